/** Facts of a manifest to begin with. Prices are USD for a million tokens. */
export type ManifestFacts = {
  slug: string
  name: string
  url: string
  dialect: string
  auth: { scheme: 'bearer' | 'header' | 'query' | 'none'; name: string }
  /** The environment variable that has the key. */
  variable: string
  model: string
  input: number
  output: number
  contextWindow: number | undefined
  maxOutput: number | undefined
}

/** Writes a manifest to begin with; `schema` is the path of its schema for editors. */
export function manifestText(facts: ManifestFacts, schema: string | undefined): string {
  const { slug, name, url, dialect, model, input, output, contextWindow, maxOutput } = facts
  const entry = [
    'api: chat',
    ...(contextWindow === undefined ? [] : [`context_window: ${contextWindow}`]),
    ...(maxOutput === undefined ? [] : [`max_output_tokens: ${maxOutput}`]),
    `pricing: { input: ${perToken(input)}, output: ${perToken(output)} }`,
  ]
  return `${schema === undefined ? '' : `# yaml-language-server: $schema=${schema}\n`}slug: ${scalar(slug)}
name: ${scalar(name)}
base_url: ${scalar(url)}
auth: ${authText(facts)}
dialect: ${scalar(dialect)}
models:
  ${scalar(model)}: { ${entry.join(', ')} }   # USD per token
# What is different there: docs/add-a-provider.md. For example:
# endpoints:
#   chat:
#     unsupported: [seed, logit_bias]   # fields that it refuses
`
}

function authText({ auth: { scheme, name }, variable }: ManifestFacts): string {
  const secret = `secret: "\${${variable}}"`
  if (scheme === 'none') return '{ scheme: none }'
  if (scheme === 'bearer') return `{ scheme: bearer, ${secret} }`
  return `{ scheme: ${scheme}, ${scheme === 'header' ? 'header' : 'parameter'}: ${scalar(name)}, ${secret} }`
}

/** Writes a price for one token, exactly: 0.25 for a million is 2.5e-7. */
function perToken(perMillion: number): string {
  const [digits = '0', exponent = '0'] = perMillion.toExponential().split('e')
  return perMillion === 0 ? '0' : `${digits}e${Number(exponent) - 6}`
}

/** Writes a text of YAML: quoted where it could mean anything else. */
function scalar(text: string): string {
  const isPlain = /^[A-Za-z][\w./:-]*$/.test(text) && !/:$|^(?:true|false|null|yes|no|on|off)$/i.test(text)
  return isPlain ? text : JSON.stringify(text)
}
