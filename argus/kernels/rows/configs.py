from argus.kernels.schedules.rows import Rows
CONFIGS = {2: {"held": Rows(), "many": Rows(rows=8, steps=1), "many4": Rows(rows=64, steps=1), "long": Rows(held=False), "single": Rows(vector=1), "longsingle": Rows(vector=1,held=False),"longmany": Rows(rows=8,vector=1,held=False)}}
CONFIGS[4]=CONFIGS[2]
