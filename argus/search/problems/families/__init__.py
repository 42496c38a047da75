"""Problems of kernel families beside products of matrices: their names, designs, references and work."""
