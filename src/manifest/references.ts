import type { ModelEntry } from '../catalog/model.ts'
import type { Dialects } from './dialect.ts'
import { brokenReference, type Environment, resolveText } from './environment.ts'
import type { Layer } from './layer.ts'
import type { Path } from './place.ts'
import type { Problem } from './problem.ts'
import type { Auth, Provider } from './provider.ts'
import type { Source } from './source.ts'
import { stack } from './stack.ts'

/** What the operator's settings may say over a manifest, in the manifest's own words; `${NAME}` not yet resolved. */
export type ProviderSettings = {
  enabled?: boolean
  base_url?: string
  secret?: string
  headers?: { [name: string]: string }
  timeouts?: TimeoutsFile
  unknown_models?: Provider['unknownModels']
  models?: { [model: string]: ModelEntry }
}

/** Limits as files write them. */
export type TimeoutsFile = { connect?: string; first_event?: string; between_events?: string; total?: string }

/** A manifest after its schema has accepted it. */
export type ManifestFile = Omit<ProviderSettings, 'enabled' | 'secret'> & {
  slug: string
  name: string
  base_url: string
  auth: { scheme: Auth['scheme']; header?: string; parameter?: string; secret?: string }
  dialect?: string
  maker?: string
}

/** What a manifest is read against; `blame` tells a problem of the settings at its place in their own file. */
export type Surroundings = {
  dialects: Dialects
  env: Environment
  settings?: { value: ProviderSettings; blame(path: Path, message: string): Problem }
}

/** What comes of a manifest's references. */
export type Resolution = { values: Pick<Provider, 'baseUrl' | 'auth' | 'headers' | 'missing'>; problems: Problem[] }

/** Puts the environment's values in; where settings say something they stand over the manifest. */
export function resolveReferences(
  source: Source,
  file: ManifestFile,
  layers: Layer[],
  around: Surroundings,
): Resolution {
  const problems: Problem[] = []
  const missing = new Set<string>()
  const { value: over = {}, blame: blameSettings } = around.settings ?? {}
  const blameFile = (path: Path, message: string) => source.problem(path, message)
  const blamer = (isOver: boolean) => (isOver && blameSettings ? blameSettings : blameFile)

  const read = (written: string, path: Path, isOver: boolean, wrong?: (text: string) => string | undefined): string => {
    const { text, missing: unset } = resolveText(written, around.env)
    for (const name of unset) missing.add(name)
    const broken = brokenReference(written)
    const message =
      broken === undefined
        ? unset.length === 0 && wrong?.(text.trim())
        : `\`${broken}\` is no reference: write \${NAME} or \${NAME:-default}`
    if (message) problems.push(blamer(isOver)(path, message))
    return text.trim()
  }

  const baseUrl = read(over.base_url ?? file.base_url, ['base_url'], over.base_url !== undefined, wrongAddress)
  const auth = { ...file.auth }
  const { secret = auth.secret } = over
  if (over.secret !== undefined && auth.secret === undefined) {
    problems.push(
      blamer(true)(['secret'], `${file.slug} takes no secret: the scheme of its \`auth\` is ${auth.scheme}`),
    )
  } else if (secret !== undefined) {
    const isOver = over.secret !== undefined
    auth.secret = read(secret, isOver ? ['secret'] : ['auth', 'secret'], isOver, (text) => wrongHeader('x', text))
  }
  const headers: Provider['headers'] = {}
  for (const [name, value] of Object.entries({ ...stack(layers).headers, ...over.headers })) {
    const isOver = over.headers?.[name] !== undefined
    headers[name] = read(value, ['headers', name], isOver, (text) => wrongHeader(name, text))
  }
  const values = { baseUrl: baseUrl.replace(/\/+$/, ''), auth: auth as Auth, headers, missing: [...missing] }
  return { values, problems }
}

function wrongAddress(text: string): string | undefined {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  return isHttp ? undefined : `\`base_url\` must be an http or https address, not "${text}"`
}

/** RFC 9110: a name is a token, a value has no control characters. What a value says is not told: it may be a secret. */
function wrongHeader(name: string, text: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `\`${name}\` cannot be the name of a header`
  return /^[\t\x20-\x7E\x80-\xFF]*$/.test(text) ? undefined : 'the value has characters that a header cannot have'
}
