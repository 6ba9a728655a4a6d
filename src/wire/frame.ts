/** One unit of a stream: its name, in formats with names, and its text. */
export type Frame = { event?: string; data: string }

/** Reads the frames of one stream from its bytes, however they are cut. */
export type FrameReader = {
  /** The frames that these bytes complete. */
  take(bytes: Uint8Array): Frame[]
  /** The frames that the end of the bytes completes. */
  end(): Frame[]
  /** The reason why no frame follows those that were returned; undefined as long as there was no error. */
  failure(): FrameError | undefined
}

/** The longest frame that readers accept by default. Characters; bytes in binary formats. */
export const frameLimit = 8 * 1024 * 1024

/** The error for a frame above the limit. */
export function tooLong(what: string, longest: number): FrameError {
  return new FrameError('long', `${what} of more than ${longest} characters or bytes`)
}

type FrameFailure = 'unreadable' | 'cut' | 'long'

/** Bytes that do not follow their format: `unreadable`, `cut` when they end in the middle of a frame, `long` when it has no end. */
export class FrameError extends Error {
  readonly kind: FrameFailure

  constructor(kind: FrameFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'FrameError'
    this.kind = kind
  }
}

/** The FrameError that this work throws; undefined when it throws none. */
export function failureOf(work: () => void): FrameError | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof FrameError) return error
    throw error
  }
  return undefined
}
