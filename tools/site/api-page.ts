/** Writes the API reference from the OpenAPI document of the router: pages that are made when the site is built. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { exampleOf } from './api-examples.ts'

/** The OpenAPI document. */
type Document = { paths: JsonObject; tags: { name: string; description: string }[]; components: JsonObject }

/** A field of an object: its name from the top (`messages[].content`), and its schema. */
type Field = { name: string; schema: JsonObject; isRequired: boolean }

/** Reads the document of the router. */
export function readOpenapi(root: string): Document {
  // Each use of an anchor is a value of its own, as it would be in JSON.
  return JSON.parse(JSON.stringify(parse(readFileSync(join(root, 'schemas/openapi.yaml'), 'utf8'))))
}

/** Returns the pages in Markdown, by their path in the site: an overview, one for each tag, and one for the schemas. */
export function apiPages(document: Document): { [path: string]: string } {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as JsonObject)
      .filter(([method]) => method !== 'parameters')
      .map(([method, body]) => ({
        path,
        method,
        body: body as JsonObject,
        shared: listOf((item as JsonObject).parameters),
      })),
  )
  const byTag = document.tags.map(({ name, description }) => {
    const own = operations.filter(({ body }) => listOf(body.tags).includes(name))
    return { name, description, own, file: `${name.toLowerCase()}.md` }
  })
  const overview = byTag.map(({ name, description, own, file }) => {
    const rows = own.map((one) => {
      const anchor = titleOf(one)
        .toLowerCase()
        .replace(/[^a-z0-9_\- ]/g, '')
        .replaceAll(' ', '-')
      return `| [\`${titleOf(one)}\`](${file}#${anchor}) | ${cell(String(one.body.summary))} |`
    })
    return `## ${name}\n\n${description}\n\n| endpoint | purpose |\n| --- | --- |\n${rows.join('\n')}`
  })
  const pages = byTag.map(({ name, description, own, file }) => {
    const text = [`# API: ${name}`, description, ...own.map((one) => operationText(document, one))].join('\n\n')
    return [`reference/${file}`, `${text}\n`]
  })
  return {
    'reference/index.md': `${[introduction, ...overview].join('\n\n')}\n`,
    ...Object.fromEntries(pages),
    'reference/schemas.md': `${schemasText(document)}\n`,
  }
}

const introduction = `# API reference

Every endpoint with its parameters, bodies and examples, made from the OpenAPI document that the router serves at \`GET /openapi.json\`. [API](../api.md)
describes how the endpoints behave, [Errors](../errors.md) has all errors, [Schemas](schemas.md) the objects of requests and replies. Fields in bold are required. Objects
may have members that are not listed here: those of a provider that speaks the client's own format pass unchanged.`

function titleOf({ method, path }: Pick<Operation, 'method' | 'path'>): string {
  return `${method.toUpperCase()} ${path}`
}

type Operation = { path: string; method: string; body: JsonObject; shared: Json[] }

function operationText(document: Document, { path, method, body, shared }: Operation): string {
  const parameters = [...shared, ...listOf(body.parameters)].map((one) => resolved(document, one))
  const content = mediaOf(document, body.requestBody)
  const request = content.map(([type, { schema, example }]) =>
    bodyText(document, `Request, \`${type}\``, schema as JsonObject, example),
  )
  const answers = Object.entries(body.responses as JsonObject).map(([status, response]) => {
    const { description = '' } = resolved(document, response)
    return `| ${status} | ${cell(String(description))} | ${mediaOf(document, response)
      .map(([type, { schema }]) => `\`${type}\`: ${linkTo(schema as JsonObject)}`)
      .join('<br>')} |`
  })
  const success = Object.entries(body.responses as JsonObject).find(([status]) => status.startsWith('2'))
  const [reply] = success ? mediaOf(document, success[1]).filter(([type]) => type === 'application/json') : []
  return [
    `## ${titleOf({ method, path })}`,
    `${escaped(String(body.summary))}. ${escaped(String(body.description ?? ''))}`.trim(),
    ...(parameters.length > 0 ? [parametersTable(document, parameters)] : []),
    ...request,
    ['| status | meaning | body |', '| --- | --- | --- |', ...answers].join('\n'),
    ...(reply ? [`Reply:\n\n${json(reply[1].example ?? exampleOf(document, reply[1].schema as JsonObject))}`] : []),
  ].join('\n\n')
}

function bodyText(document: Document, title: string, schema: JsonObject, example: Json | undefined): string {
  return `${title}: ${linkTo(schema)}\n\n${json(example ?? exampleOf(document, schema))}`
}

function parametersTable(document: Document, parameters: readonly JsonObject[]): string {
  const rows = parameters.map((one) => {
    const schema = resolved(document, one.schema)
    const name = one.required === true ? `**\`${one.name}\`**` : `\`${one.name}\``
    const example = one.example ?? exampleOf(document, schema, String(one.name))
    return `| ${name} | ${one.in} | ${typeOf(schema)} | ${cell(String(one.description ?? schema.description ?? ''))} | ${inline(example)} |`
  })
  return ['| parameter | in | type | meaning | example |', '| --- | --- | --- | --- | --- |', ...rows].join('\n')
}

/** Returns the section of all schemas, each with a table of its fields. */
function schemasText(document: Document): string {
  const schemas = Object.entries(document.components.schemas as JsonObject) as [string, JsonObject][]
  const sections = schemas.map(([name, schema]) => {
    const fields = fieldsOf(document, schema)
    const about = typeof schema.description === 'string' ? [escaped(schema.description)] : []
    if (fields.length === 0)
      return [`## ${name}`, ...about, typeOf(schema), json(exampleOf(document, schema))].join('\n\n')
    const rows = fields.map(({ name: field, schema: one, isRequired }) => {
      const shown = isRequired ? `**\`${field}\`**` : `\`${field}\``
      return `| ${shown} | ${typeOf(one)} | ${cell(String(one.description ?? ''))} | ${inline(exampleOf(document, one, field))} |`
    })
    const table = ['| field | type | meaning | example |', '| --- | --- | --- | --- |', ...rows].join('\n')
    return [`## ${name}`, ...about, table].join('\n\n')
  })
  return ['# API: Schemas', 'The objects of requests and replies.', ...sections].join('\n\n')
}

/** Returns the fields of an object, and those of the objects inside it that have no schema of their own. */
function fieldsOf(document: Document, schema: JsonObject, prefix = '', depth = 0): Field[] {
  const parts = [schema, ...listOf(schema.allOf).map((one) => resolved(document, one))]
  return parts.flatMap((part) =>
    Object.entries((part.properties ?? {}) as JsonObject).flatMap(([name, member]) => {
      const one = member as JsonObject
      const field = {
        name: prefix + name,
        schema: one,
        isRequired: depth === 0 && listOf(part.required).includes(name),
      }
      const items = isObject(one.items) ? one.items : undefined
      const inner = items?.properties ? { schema: items, mark: '[].' } : { schema: one, mark: '.' }
      const below = depth < maxDepth ? fieldsOf(document, inner.schema, `${prefix}${name}${inner.mark}`, depth + 1) : []
      return [field, ...below]
    }),
  )
}

/** Maximum depth of fields in one table. */
const maxDepth = 3

/** Returns the value that a reference leads to. */
export function resolved(document: { components: JsonObject }, value: Json | undefined): JsonObject {
  if (!isObject(value)) return {}
  if (typeof value.$ref !== 'string') return value
  const found = value.$ref
    .split('/')
    .slice(1)
    .reduce<Json | undefined>((at, step) => (isObject(at) ? at[step] : undefined), document as unknown as JsonObject)
  return resolved(document, found)
}

function mediaOf(document: Document, value: Json | undefined): [string, JsonObject][] {
  const { content } = resolved(document, value)
  return isObject(content) ? (Object.entries(content) as [string, JsonObject][]) : []
}

function typeOf(schema: JsonObject): string {
  if (typeof schema.$ref === 'string') return linkTo(schema)
  const { enum: words, const: word, items, type } = schema
  if (word !== undefined) return inline(word)
  if (Array.isArray(words)) return words.map(inline).join(', ')
  const choices = [...listOf(schema.oneOf), ...listOf(schema.anyOf)].filter(isObject)
  if (choices.length > 0) return [...new Set(choices.map(typeOf))].join(' or ')
  if (isObject(items)) return `list of ${typeOf(items)}`
  const names = [type ?? (schema.allOf ? 'object' : 'any')].flat().map(String)
  return names.join(' or ')
}

function linkTo(schema: JsonObject): string {
  if (typeof schema.$ref !== 'string') return typeOf(schema)
  const name = schema.$ref.split('/').at(-1) ?? ''
  return `[${name}](schemas.md#${name.toLowerCase()})`
}

function json(value: Json | undefined): string {
  return `\`\`\`json\n${JSON.stringify(value ?? null, null, 2)}\n\`\`\``
}

function inline(value: Json | undefined): string {
  if (value === undefined) return ''
  const text = JSON.stringify(value)
  return `\`${(text.length > maxInline ? `${text.slice(0, maxInline)}…` : text).replaceAll('|', '\\|').replaceAll('`', "'")}\``
}

/** Maximum length of an example in a table. Characters. */
const maxInline = 120

function cell(text: string): string {
  return escaped(text).replaceAll('|', '\\|').replace(/\s+/g, ' ').trim()
}

/** Outside of code a name in angle brackets would be HTML. */
function escaped(text: string): string {
  const parts = text.split('`').map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
  return parts.join('`').trim()
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : []
}
