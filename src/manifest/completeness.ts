import { neutralFields, partTypes } from './fields.ts'
import type { Problem } from './problem.ts'
import type { ChatEndpoint } from './provider.ts'
import type { Source } from './source.ts'

/** Nothing gets lost in silence: each neutral field and each type of part is read by the request mapping or declared. */
export function completenessProblems(source: Source, { request, losses }: ChatEndpoint): Problem[] {
  const declared = new Set(losses.map(({ field }) => field))
  const fields = Object.entries(neutralFields)
    .filter(([field, duty]) => duty === 'mapped' && !request.reads.has(field) && !declared.has(field))
    .map(([field]) => `the field \`${field}\` is neither mapped nor declared under \`losses\``)
  const types = Object.keys(partTypes)
    .filter((type) => !mentions(request.text, type) && !declared.has(`parts.${type}`))
    .map((type) => `parts of type \`${type}\` are neither mapped nor declared under \`losses\` (\`parts.${type}\`)`)
  return [...fields, ...types].map((message) => source.problem(['endpoints', 'chat', 'losses'], message, 'name'))
}

/** A mapping that knows a type of part writes its name as a text. */
function mentions(text: string, type: string): boolean {
  return text.includes(`"${type}"`) || text.includes(`'${type}'`)
}
