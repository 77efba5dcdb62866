import torch
from torch.autograd import Variable
from torch.cuda.amp import GradScaler

scaler = GradScaler()
größe = torch.ger(ü, torch.symeig(b)[0])
x = Variable(x) + Variable(y)
z = torch.rfft(x, 4)
