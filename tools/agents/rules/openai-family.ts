import { type Fields, fieldsOf, textOf } from '../fields.ts'
import { firstOf, type Rule, textRefusal } from './rule.ts'

const efforts = ['none', 'low', 'medium', 'high', 'xhigh', 'max']
const sampling = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs']

/** Limits of GPT-5.6 at both of OpenAI's APIs, which differ in where a request has its effort. */
export function openaiFamily(effortOf: (body: Fields) => unknown, path: string): readonly Rule[] {
  return [
    {
      name: 'efforts',
      refusal: (body) => {
        const effort = effortOf(body) ?? 'medium'
        return efforts.includes(textOf(effort))
          ? undefined
          : `Unsupported value: '${path}' does not support '${effort}' with this model. Supported values are: ${efforts.map((one) => `'${one}'`).join(', ')}.`
      },
    },
    {
      name: 'sampling while thinking',
      refusal: (body) => {
        const found =
          effortOf(body) === 'none'
            ? undefined
            : sampling.find((name) => body[name] !== undefined && body[name] !== null)
        return found && `Unsupported parameter: '${found}' is not supported with this model.`
      },
    },
    { name: 'user', refusal: ({ user }) => textRefusal('user', user, { max: 64 }) },
    {
      name: 'safety_identifier',
      refusal: (body) => textRefusal('safety_identifier', body.safety_identifier, { max: 64 }),
    },
    {
      name: 'prompt_cache_key',
      refusal: (body) => textRefusal('prompt_cache_key', body.prompt_cache_key, { max: 64 }),
    },
    { name: 'metadata', refusal: metadata },
  ]
}

function metadata(body: Fields): string | undefined {
  const pairs = Object.entries(fieldsOf(body.metadata))
  if (pairs.length > 16)
    return `Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with ${pairs.length} properties instead.`
  return firstOf(pairs, ([name, value]) => {
    if (typeof value !== 'string')
      return `Invalid type for 'metadata.${name}': expected a string, but got ${typeof value} instead.`
    return textRefusal(`metadata.${name}`, name, { max: 64 }) ?? textRefusal(`metadata.${name}`, value, { max: 512 })
  })
}
