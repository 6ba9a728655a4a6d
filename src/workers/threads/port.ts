import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

/** The number of messages that each side has posted: shared memory, so that the other side knows whether it has handled all. */
export type Counters = { ownSent: Int32Array; otherSent: Int32Array }

/**
 * One end of the connection between two threads. Everything that is sent in one turn of the event loop is one message, and arrives
 * in order. `catchUp` handles at once what the other side has posted, although this thread's event loop has not come to it.
 */
export class ThreadPort<Out, In> {
  readonly #port: MessagePort
  readonly #counters: Counters
  readonly #onItem: (item: In) => void
  /** Returns the items that belong before everything that is waiting to be posted. */
  readonly #first: () => Out[]
  #waiting: Out[] = []
  #wakeUp: NodeJS.Immediate | NodeJS.Timeout | undefined
  #handled = 0

  constructor(
    port: MessagePort,
    { counters, onItem, first = () => [] }: { counters: Counters; onItem(item: In): void; first?: () => Out[] },
  ) {
    this.#port = port
    this.#counters = counters
    this.#onItem = onItem
    this.#first = first
    port.on('message', (items: In[]) => this.#handle(items))
  }

  /** Sends an item by the end of this turn, or after a few milliseconds. */
  send(item: Out, waitMs = 0): void {
    this.#waiting.push(item)
    this.wake(waitMs)
  }

  /** Schedules a message: there is something to post. */
  wake(waitMs = 0): void {
    this.#wakeUp ??= waitMs > 0 ? setTimeout(() => this.flush(), waitMs) : setImmediate(() => this.flush())
  }

  sendNow(item: Out): void {
    this.#waiting.push(item)
    this.flush()
  }

  flush(): void {
    this.#sleep()
    const items = [...this.#first(), ...this.#waiting]
    this.#waiting = []
    if (items.length === 0) return
    this.#port.postMessage(items)
    Atomics.add(this.#counters.ownSent, 0, 1)
  }

  /** Handles everything that the other side has posted. */
  catchUp(): void {
    if (Atomics.load(this.#counters.otherSent, 0) === this.#handled) return
    for (;;) {
      const received = receiveMessageOnPort(this.#port)
      if (!received) return
      this.#handle(received.message)
    }
  }

  close(): void {
    this.#sleep()
    this.#port.close()
  }

  #sleep(): void {
    clearImmediate(this.#wakeUp as NodeJS.Immediate)
    clearTimeout(this.#wakeUp as NodeJS.Timeout)
    this.#wakeUp = undefined
  }

  #handle(items: readonly In[]): void {
    this.#handled = (this.#handled + 1) | 0
    for (const item of items) this.#onItem(item)
  }
}

/** A counter that two threads share. */
export function sharedCounter(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4))
}
