import program
from support import collect, numbers, with_gradients

SOUND = program.STFTLoss(32, 8, 24)
WHOLE = program.STFTLoss(32, 8, 32)  # a window as long as the transform

results, raised = collect(
    fft2c=lambda: with_gradients(program.fft2c, numbers(2, 4, 5, 2)),
    fft2c_plain=lambda: program.fft2c(numbers(2, 4, 5, 2), normalized=False),
    sense=lambda: with_gradients(program.sense, numbers(4, 6, 2), numbers(3, 4, 6, 2, seed=1)),
    circular=lambda: with_gradients(program.circular, numbers(2, 7), numbers(2, 7, seed=1)),
    pooling=lambda: with_gradients(program.CompactPooling(8), numbers(2, 8), numbers(2, 8, seed=1)),
    pooling_of_pictures=lambda: with_gradients(
        program.CompactPooling(8), numbers(2, 8, 3, 2), numbers(2, 8, 3, 2, seed=1)
    ),
    pooling_apart=lambda: program.CompactPooling(8, sum_pool=False)(
        numbers(2, 8, 3, 2), numbers(2, 8, 3, 2, seed=1)
    ),
    delays=lambda: with_gradients(program.delays, numbers(2, 9), numbers(2, 9, seed=1)),
    saliency=lambda: program.saliency(numbers(2, 1, 4, 6), numbers(4, 4, 6, seed=1)),
    saliency_gradient=lambda: with_gradients(
        lambda x: program.saliency(x, numbers(4, 4, 6, seed=1))[0], numbers(2, 1, 4, 6)
    ),
    spectral_loss=lambda: program.spectral_loss(numbers(3, 4, 4), numbers(3, 4, 4, seed=1)),
    radial=lambda: program.radial(numbers(3, 4, 4), True),
    radial_whole=lambda: program.radial(numbers(3, 4, 4), False),
    magnitude=lambda: with_gradients(SOUND.magnitude, numbers(2, 100)),
    features=lambda: with_gradients(WHOLE.features, numbers(2, 100)),
    synthesis=lambda: with_gradients(SOUND.synthesis, numbers(2, 17, 13).abs(), numbers(2, 17, 13, seed=1)),
)
