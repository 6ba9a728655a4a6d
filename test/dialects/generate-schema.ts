import { Ajv } from 'ajv'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

// The published schema, made strict: this API refuses unknown names, and parts with more or less than one kind of data.

// biome-ignore lint/suspicious/noExplicitAny: schemas have the shape of their source.
type Schema = any

const file = 'gemini.v1beta.schema.json'

/** Why the published schema of generateContent cannot be read here; undefined when it can. */
export const generateSchemaMissing = specMissing(file)

/** The violations of the published schema in a request for generateContent. */
export function generateViolations(body: object): string[] {
  validate?.({ model: 'in the path', ...body })
  return (validate?.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** Members that the API documents and the published descriptor does not have yet. */
const newer: { [type: string]: { [member: string]: object } } = {
  GenerateContentRequest: { serviceTier: { enum: ['flex', 'standard', 'priority'] } },
  ThinkingConfig: { thinkingLevel: { enum: ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'] } },
  ToolConfig: { includeServerSideToolInvocations: { type: 'boolean' } },
}

const validate = generateSchemaMissing ? undefined : strictValidator(structuredClone(publishedSpec(file)))

function strictValidator(schema: Schema) {
  const { definitions } = schema
  for (const [type, definition] of Object.entries<Schema>(definitions)) {
    if (!definition.properties) continue
    definition.additionalProperties = false
    Object.assign(definition.properties, newer[type])
  }
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int64: true } })
  ajv.addKeyword({
    keyword: 'x-oneofs',
    validate: (groups: { [group: string]: string[] }, value: object) =>
      Object.entries(groups).every(([group, members]) => {
        const given = members.filter((member) => member in value).length
        return group === 'data' ? given === 1 : given <= 1
      }),
  })
  return ajv.compile({ $ref: '#/definitions/GenerateContentRequest', definitions })
}
