import { RouterError } from '../../core/errors.ts'
import { isObject, type Json } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { Message } from '../../core/request.ts'
import { list, object, oneOf, required } from '../check.ts'
import { readContent } from './parts.ts'

/** The instructions of a body. Throws RouterError 400. */
export function readSystem(value: Json | undefined): Part[] {
  if (value === undefined || value === null || value === '') return []
  return readContent(value, 'system', new Map())
}

const roles = oneOf(['user', 'assistant', 'system'])

/** The conversation of a body. Throws RouterError 400 that names the message. */
export function readMessages(value: Json | undefined): Message[] {
  const given = required(value, 'messages', 'an array of messages', list)
  if (given.length === 0)
    throw new RouterError('invalid_request', "'messages' must not be empty.", { param: 'messages' })
  const names = new Map<string, string>()
  return given.map((item, index) => {
    const plain = plainMessage(item)
    if (plain) return plain
    const path = `messages[${index}]`
    const message = object(item, path)
    const role = required(message.role, `${path}.role`, "'user' or 'assistant'", roles)
    const parts = readContent(message.content, `${path}.content`, names)
    for (const part of parts) if (part.type === 'tool_call') names.set(part.id, part.name)
    return { role, parts }
  })
}

/** A message whose content is a text: read without the names that errors need. */
function plainMessage(item: Json): Message | undefined {
  if (!isObject(item) || typeof item.content !== 'string') return undefined
  const { role, content } = item
  if (role !== 'user' && role !== 'assistant' && role !== 'system') return undefined
  return { role, parts: [{ type: 'text', text: content }] }
}
