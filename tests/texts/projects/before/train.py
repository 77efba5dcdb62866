import os

rank = int(os.environ["LOCAL_RANK"])
