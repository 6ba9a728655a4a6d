import type { RouterError } from '../../core/errors.ts'

/**
 * Time for which the answer of one attempt is read on after its call is over, so that its provider can report usage that the client
 * does not see. It begins when the client disconnects or a time limit passes, once the provider has the request; nobody receives what
 * arrives in it.
 */
export class Overtime {
  readonly #ms: number
  readonly #stop: AbortSignal
  #interrupt: ((error: RouterError) => void) | undefined
  #error: RouterError | undefined
  #reject: ((error: RouterError) => void) | undefined
  #end: (() => void) | undefined

  /** `ms`: how long it lasts; `stop` is aborted when the process stops, which ends it early. */
  constructor(ms: number, stop: AbortSignal) {
    this.#ms = ms
    this.#stop = stop
  }

  get ms(): number {
    return this.#ms
  }

  /** Returns true while the call is over and its answer is still read. */
  get isOpen(): boolean {
    return this.#end !== undefined
  }

  /**
   * Sets what ends the reading of the answer for the client: it calls `begin` then. Throws the error of a call that is over: nothing is
   * sent again for it.
   */
  attach(interrupt: (error: RouterError) => void): void {
    if (this.#error) throw this.#error
    this.#interrupt = interrupt
  }

  /** Begins because the call is over, unless the answer has ended. */
  start(error: RouterError): void {
    this.#interrupt?.(error)
  }

  /** Begins, unless the process stops. `end` closes the connection; it is called at the latest when the process stops. */
  begin(error: RouterError, end: () => void): boolean {
    if (this.#stop.aborted) return false
    this.#error = error
    this.#end = end
    this.#stop.addEventListener('abort', end)
    this.#reject?.(error)
    return true
  }

  /** Called when the answer has ended. */
  ended(): void {
    if (this.#end) this.#stop.removeEventListener('abort', this.#end)
    this.#end = undefined
  }

  /** Ends it early: nothing more is read. */
  cancel(): void {
    this.#end?.()
  }

  /** Settles as `work` does, or, as soon as the call is over, rejects with its error: the work then goes on. One at a time. */
  unlessOver<Result>(work: Promise<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.#reject = reject
    work.then(resolve, reject)
    if (this.#error) reject(this.#error)
    return promise
  }
}
