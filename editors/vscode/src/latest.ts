// Runs one job at a time. Nothing here needs VS Code.

/** Runs a job, and runs it once more if it was requested while it ran. */
export class Latest {
  private running: Promise<void> | undefined;
  private requested = false;

  constructor(private readonly job: () => Promise<void>) {}

  /** Request a run. Resolves or rejects as the last run does, which began after the request. */
  request(): Promise<void> {
    this.requested = true;
    this.running ??= this.run();
    return this.running;
  }

  private async run(): Promise<void> {
    await undefined; // requests of the same moment are one
    let failure: { error: unknown } | undefined;
    do {
      this.requested = false;
      failure = undefined;
      try {
        await this.job();
      } catch (error) {
        failure = { error };
      }
    } while (this.requested);
    this.running = undefined; // in the same step as the last look at `requested`: none gets lost
    if (failure !== undefined) {
      throw failure.error;
    }
  }
}
