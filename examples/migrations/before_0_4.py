"""What was written for torch 0.3: a function of one's own, volatile variables."""

from torch.autograd import Function, Variable


class ReverseGradient(Function):
    def __init__(self, weight):
        self.weight = weight

    def forward(self, x):
        return x.view_as(x)

    def backward(self, grad_output):
        return -self.weight * grad_output


def reverse(x, weight):
    return ReverseGradient(weight)(x)


def evaluate(model, criterion, loader):
    total = 0
    for x, y in loader:
        x = Variable(x.cuda(), volatile=True)
        y = Variable(y.cuda(), volatile=True)
        loss = criterion(model(x), y)
        total += loss.data[0]
    return total / len(loader)
