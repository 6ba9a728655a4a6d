import { freezeData } from './freeze-data.ts'

/** A conversation, or the reply to one, for plugins: it is read and frozen when the first of them looks at it. */
export class SeenChat<Chat> {
  readonly operation = 'chat'
  declare readonly chat: Chat
  readonly #read: () => Chat
  #isRead = false
  #whole: Chat | undefined

  constructor(read: () => Chat) {
    this.#read = read
    Object.defineProperty(this, 'chat', SeenChat.#chat)
    Object.freeze(this)
  }

  /** A member of its own, so that plugins may spread it. */
  static readonly #chat: PropertyDescriptor & ThisType<SeenChat<unknown>> = {
    enumerable: true,
    get() {
      if (!this.#isRead) this.#whole = freezeData(this.#read())
      this.#isRead = true
      return this.#whole
    },
  }
}
