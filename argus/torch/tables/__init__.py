"""Operations of aten as expressions over coordinates: one file for each family."""
