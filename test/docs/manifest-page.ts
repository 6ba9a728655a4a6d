/** Prints `docs/manifest.md`: the fields of manifests and dialects as the published schemas describe them. `npm run docs:manifest`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { catalogue } from '../../src/core/errors.ts'
import { renamedKeys } from '../../src/manifest/renamed-keys.ts'

export type Schema = {
  $ref?: string
  title?: string
  type?: string | string[]
  enum?: string[]
  description?: string
  examples?: unknown[]
  required?: string[]
  properties?: { [name: string]: Schema }
  items?: Schema
  additionalProperties?: Schema | boolean
  patternErrorMessage?: string
  $defs?: { [name: string]: Schema }
}

/** A field of a manifest or dialect: its name from the section's beginning (`stream.format`), its pointer from the file. */
export type Field = { name: string; pointer: string; schema: Schema; isRequired: boolean }

/** A section of the page: one object of a schema with all its fields. */
export type Section = { title: string; pointer: string; schema: Schema; fields: Field[] }

const files = ['provider', 'dialect', 'catalog'] as const
const schemas = new Map(files.map((name) => [`${name}.schema.json`, readSchema(name)]))

function readSchema(name: string): Schema {
  return JSON.parse(readFileSync(join(import.meta.dirname, `../../schemas/${name}.schema.json`), 'utf8'))
}

/** The schema at a pointer such as `provider.schema.json#/$defs/auth`. */
export function at(pointer: string): Schema {
  const [file = '', path = ''] = pointer.split('#')
  const steps = path.split('/').slice(1)
  const found = steps.reduce<unknown>((node, step) => (node as { [step: string]: unknown })[step], schemas.get(file))
  if (found === undefined) throw new Error(`no schema at ${pointer}`)
  return found as Schema
}

/** Where a reference leads, from the file that it stands in. */
function target(ref: string, from: string): string {
  return ref.startsWith('#') ? `${from.split('#')[0]}${ref}` : ref
}

/** Objects of the schema that have a section: the others stand inside the tables of these. */
const sectionTitles: { [pointer: string]: string } = {
  'provider.schema.json#': 'Fields of a manifest',
  'dialect.schema.json#': 'Fields of a dialect',
  'provider.schema.json#/$defs/auth': 'Authentication',
  'provider.schema.json#/$defs/timeouts': 'Time limits',
  'provider.schema.json#/$defs/traits/items': 'Traits',
  'provider.schema.json#/$defs/familyLimits': 'Limits of model families',
  'provider.schema.json#/$defs/textLimit': 'Limit of a text',
  'provider.schema.json#/$defs/numberLimit': 'Limit of a number',
  'provider.schema.json#/$defs/mediaLimit': 'Limit of media',
  'provider.schema.json#/$defs/schemaLimit': 'Limit of a schema',
  'provider.schema.json#/$defs/history': 'Requirements for conversations',
  'provider.schema.json#/$defs/rateLimits/items': 'Rate limits',
  'provider.schema.json#/$defs/restricted/additionalProperties': 'Restricted fields',
  'provider.schema.json#/$defs/variant': 'Variants',
  'provider.schema.json#/$defs/endpoints': 'Endpoints',
  'provider.schema.json#/$defs/chat': 'Endpoint for conversations',
  'provider.schema.json#/$defs/operation': 'Other endpoints',
  'provider.schema.json#/$defs/request': 'Request mappings',
  'provider.schema.json#/$defs/examples/items': 'Examples',
}

/** All sections, in the order of the page. */
export const sections: readonly Section[] = Object.entries(sectionTitles).map(([pointer, title]) => {
  const schema = at(pointer)
  return { title, pointer, schema, fields: fieldsOf(schema, pointer, '') }
})

/** The fields of an object, and those of the objects inside it that have no section of their own. */
function fieldsOf(schema: Schema, pointer: string, prefix: string): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = `${pointer}/properties/${name}`
    const isRequired = schema.required?.includes(name) ?? false
    const field = { name: prefix + name, pointer: path, schema: member, isRequired }
    const inner = member.items?.properties ? { schema: member.items, path: `${path}/items`, mark: '[].' } : undefined
    const { schema: object, path: below, mark } = inner ?? { schema: member, path, mark: '.' }
    return [field, ...(sectionTitles[below] ? [] : fieldsOf(object, below, `${prefix}${name}${mark}`))]
  })
}

/** What a field is shown with: its own words, else those of what it refers to. */
export function described({ schema, pointer }: Pick<Field, 'schema' | 'pointer'>): Schema {
  const { $ref, ...own } = schema
  return $ref === undefined ? schema : { ...at(target($ref, pointer)), ...own, $ref }
}

/** What is said below the table of a section. */
const notes: { [pointer: string]: string } = {
  'provider.schema.json#/$defs/traits/items': `Traits are joined in this order, and later ones win, member by member:

1. Those of the dialect: what is true of a family wherever it is served.
2. Those of the provider that \`traits_of\` names.
3. Those of the manifest, from top to bottom.
4. Those of the variant that serves the request.

A member is one fact, one limit (\`tool_schema\` as a whole) or one requirement (\`tool_id\` as a whole). Ids may begin with the name of an
organization or a path, and have any case: begin a pattern with \`^\` only if the provider's ids do. To cancel a fact of the dialect, state another
value, such as \`reasoning_replay: none\`.

Mappings read any fact. The router itself reads these:

| fact | meaning |
| --- | --- |
| \`efforts\` | Levels of effort that the model takes. Any other becomes the nearest, which is reported. |
| \`thinking\`, \`thinking_off\` | The form in which reasoning is asked for: edited bodies get the same as translated ones. |
| \`sampling\` | Whether the model takes \`temperature\`, \`top_p\` and \`top_k\`: \`all\`, \`one\` (not \`top_p\` beside \`temperature\`) or \`none\`. What it refuses then or while it thinks is removed from edited Messages bodies, which is reported. |
| \`forced_tools\` | \`false\` if no tool may be required: in edited Messages bodies the model chooses then, which is reported. |
| \`prefill\` | Whether the last message may be the assistant's. |
| \`prompt_cache\` | \`{lifetime, extended}\`: how long a prompt stays in the provider's cache after its last use (\`5m\`), and how long if the request asks for an hour or more (the same); used by [\`sticky: cache\`](routing.md#sticky). |
| \`token_factor\` | Tokens of the text per token of OpenAI's \`o200k_base\` (default: 2), for counted prompts. |
| \`image_tokens\` | Maximum tokens of an image (default: 16,384). |
| \`search_uses\` | Maximum web searches of one call (default: 10) if no \`max_uses\` reaches the provider. |
| \`search_tokens\` | Maximum tokens that one web search adds to the prompt (default: the whole context window). |
| \`counts_uses\` | \`false\` if the provider's usage does not count the uses of its tools: searches and page visits in the answer are counted then. |
| \`remote_uses\` | How often the model uses tools of its provider without being asked (default: 0). |

Those about tokens and uses determine what a call [reserves](api.md#budgets).

All others are explained at the head of each dialect.`,
  'provider.schema.json#/$defs/familyLimits': `How a request that exceeds a limit is adapted:

| limit | adapted |
| --- | --- |
| \`tool_name\` | Shortened to a name that still reads like the given one and ends with a part of its digest: in tools, tool choice and history. The reply and every event have the client's name again. |
| \`tool_description\` | Cut, which is reported. |
| \`schema_name\` | Shortened likewise. |
| \`user\`, \`safety_identifier\`, \`cache_key\` | A digest, the same for the same text; or dropped, with \`drop\`. |
| numbers | The nearest, reported; or dropped, with \`drop\`. |
| \`stop\`, \`metadata\` | The first ones stay, the others are dropped and reported. |
| \`tools\`, \`images\`, \`files\`, \`media\` | The request is refused with a reason. Of several targets, those that would refuse it are not asked. |
| \`strict_tools\` | No tool is strict, which is reported. |
| \`tool_choice\`, \`tool_choice_thinking\` | A specific required tool becomes \`required\` if it is the only tool; otherwise the model chooses, which is reported. |
| \`tool_schema\`, \`answer_schema\` | Rewritten; reported where a rule is lost, or strictness. |

Limits apply to bodies that are translated and to those that are edited. In the latter, only the fields that must change are rewritten:
everything else stays as the client sent it. With \`x-router-strict: true\` a request that loses something is refused.`,
}

/** The whole page, in Markdown. */
export function manifestPage(): string {
  return `${[introduction, ...sections.map(sectionText), errorCodes(), formerNames()].join('\n\n')}\n`
}

const introduction = `# Manifest reference

Generated by \`npm run docs:manifest\` from \`schemas/provider.schema.json\` and \`schemas/dialect.schema.json\`, which editors use too, with the first line
\`# yaml-language-server: $schema=../schemas/provider.schema.json\`. Fields in bold are required. How to write a manifest: [add a provider](add-a-provider.md);
the mapping language: [mappings](mapping.md); models and their prices: [catalog](add-a-provider.md#models-and-prices).`

/** The fields that had another name before. */
function formerNames(): string {
  const ofManifests = renamedKeys.filter(({ in: [top] }) => top !== 'health')
  const names = new Map(ofManifests.map(({ from, to }) => [from, to]))
  const rows = [...names].map(([from, to]) => `| \`${from}\` | \`${to}\` |`)
  return `## Former names

These fields were renamed. Files that use a former name still work in this release, with a warning at its place; a file must not have both names.

| former name | name |
| --- | --- |
${rows.join('\n')}`
}

function sectionText({ title, pointer, schema, fields }: Section): string {
  const about = schema.description ?? described({ schema: at(parentOf(pointer)), pointer }).description ?? schema.title
  const header = ['field', 'type', 'default', 'meaning', 'example']
  const rows = [header, header.map(() => '---'), ...fields.map(rowOf)]
  return [
    `## ${title}`,
    ...(about ? [cell(about)] : []),
    rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n'),
    ...(notes[pointer] === undefined ? [] : [notes[pointer]]),
  ].join('\n\n')
}

function parentOf(pointer: string): string {
  return pointer.replace(/\/(items|additionalProperties)$/, '')
}

function rowOf(field: Field): string[] {
  const schema = described(field)
  const { meaning, byDefault } = split(schema.description ?? '')
  const name = field.isRequired && !field.name.includes('.') ? `**\`${field.name}\`**` : `\`${field.name}\``
  return [
    name,
    typeOf(schema, field.pointer),
    byDefault,
    cell(meaning),
    (schema.examples ?? []).map(shown).join(' or '),
  ]
}

/** Descriptions say their default in brackets. */
function split(description: string): { meaning: string; byDefault: string } {
  const [said = '', byDefault = ''] = /(?: \(default: ([^)]+)\))/.exec(description) ?? []
  return { meaning: description.replace(said, ''), byDefault: cell(byDefault) }
}

function cell(text: string): string {
  // Outside of code a name in angle brackets would be HTML.
  const parts = text.split('`').map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
  return parts.join('`').replaceAll('|', '\\|')
}

function shown(example: unknown): string {
  const text = stringify(example, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true }).trim()
  return `\`${text.replaceAll('|', '\\|')}\``
}

const typeNames: { [type: string]: string } = {
  string: 'string',
  integer: 'whole number',
  boolean: 'true or false',
  array: 'list',
}

function typeOf({ $ref, type, enum: values, items, additionalProperties }: Schema, pointer: string): string {
  const aim = $ref === undefined ? pointer : target($ref, pointer)
  const section = sectionTitles[aim] ?? sectionTitles[`${aim}/items`] ?? sectionTitles[`${aim}/additionalProperties`]
  const linked =
    section && !(aim === pointer)
      ? `[${section.toLowerCase()}](#${section.toLowerCase().replaceAll(' ', '-')})`
      : undefined
  if (linked) return linked
  if ($ref?.endsWith('/mapping') || at(aim).$ref?.endsWith('/mapping')) return '[mapping](mapping.md)'
  if ($ref?.endsWith('/duration')) return 'duration'
  if (values) return values.map((value) => `\`${value}\``).join(', ')
  const members = items ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  const inner = members?.enum && `: ${members.enum.map((value) => `\`${value}\``).join(', ')}`
  return (
    [type ?? 'anything']
      .flat()
      .map((name) => typeNames[name] ?? name)
      .join(' or ') + (inner ?? '')
  )
}

function errorCodes(): string {
  const { enum: codes = [] } = at('provider.schema.json#/$defs/errorCode')
  const rows = codes.map((code) => `| \`${code}\` | ${catalogue[code as keyof typeof catalogue].status} |`)
  const table = ['| code | status |', '| --- | --- |', ...rows].join('\n')
  return ['## Error codes', at('provider.schema.json#/$defs/errorCode').description, table].join('\n\n')
}

if (import.meta.main) process.stdout.write(manifestPage())
