import { hasErrors } from '../../manifest/check/problem.ts'
import type { Provider } from '../../manifest/provider.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import type { Source } from '../../manifest/read/source.ts'
import type { Config } from '../../snapshot/config.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import { CommandError } from '../command.ts'
import { entriesOf, entryOf, isDialect, loadOne } from '../load-one.ts'
import { type LiveCall, liveCall } from './live-call.ts'
import { cheapestModel, type LiveModel } from './live-model.ts'

/** The files around a manifest, and the model that is to be called where one is named. */
type Calling = { config: Config; env: Environment; model: string | undefined; client: HttpClient }

/**
 * Calls the live address of a manifest that has passed its checks: once for a whole answer, once for a stream. Nothing is called for
 * dialects, and for files with errors. Throws CommandError where it cannot be called.
 */
export async function callManifest(source: Source, calling: Calling): Promise<LiveCall[]> {
  if (isDialect(source)) return []
  const { config, env, client } = calling
  const { loaded, problems } = await loadOne(source, config, env)
  if (!loaded || hasErrors(problems)) return []
  const { provider } = loaded
  if (provider.missing.length > 0)
    throw new CommandError(`To call ${provider.slug}, set ${provider.missing.join(', ')}.`)
  const chosen = await chosenModel(provider, calling)
  const calls: LiveCall[] = []
  for (const stream of [false, true]) calls.push(await liveCall({ provider, ...chosen }, { stream, client }))
  return calls
}

async function chosenModel(provider: Provider, { config, model }: Calling): Promise<LiveModel> {
  const { slug } = provider
  if (model !== undefined) {
    const name = model.startsWith(`${slug}/`) ? model.slice(slug.length + 1) : model
    return { model: name, entry: await entryOf(provider, name, config) }
  }
  const found = cheapestModel(provider, await entriesOf(provider, config))
  if (found) return found
  throw new CommandError(`No model of ${slug} for conversations is known: name one with --model.`)
}
