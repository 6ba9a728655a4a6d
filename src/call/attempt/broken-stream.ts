import { RouterError } from '../../core/errors.ts'
import type { Fold } from '../../core/fold.ts'
import type { Target } from '../../manifest/target.ts'

/** Throws RouterError for a stream that has ended without being a whole reply. */
export function requireWhole(fold: Fold, { provider: { slug: provider } }: Target): void {
  if (!fold.complete) {
    const message = 'The provider ended its stream in the middle of the reply.'
    throw new RouterError('provider_cut', message, { provider })
  }
  const { finish, finish_raw } = fold.reply()
  if (finish !== 'error') return
  const reason = finish_raw === undefined ? 'an error' : `the finish reason \`${finish_raw}\`, which reports a failure`
  throw new RouterError('provider_unreadable', `The provider ended its reply with ${reason}.`, { provider })
}

/** Throws RouterError for a reply of more than so many characters. */
export function requireBounded({ size }: Fold, { provider: { slug: provider } }: Target, most: number): void {
  if (size <= most) return
  const message = `The provider sent a reply of more than ${most} characters, the answers.body_limit of this server.`
  throw new RouterError('provider_unreadable', message, { provider })
}
