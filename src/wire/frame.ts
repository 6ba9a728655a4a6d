/** One unit of a stream: its name, in formats with names, and its text. */
export type Frame = { event?: string; data: string }

/** A bound on memory. Characters or bytes. */
export const frameLimit = 64 * 1024 * 1024

/** Bytes that do not follow their format: `unreadable`, or `cut` when they end in the middle of a frame. */
export class FrameError extends Error {
  readonly kind: 'unreadable' | 'cut'

  constructor(kind: 'unreadable' | 'cut', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'FrameError'
    this.kind = kind
  }
}
