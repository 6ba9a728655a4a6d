/*
 * The mappings of the bench as plain code, for the members that occur in its inputs and their siblings: what a file of
 * code per provider would do.
 */

// biome-ignore lint/suspicious/noExplicitAny: code written by hand reads bodies of others without types.
type Json = any

/** A neutral request as a body of the Messages API. */
export function anthropicRequest(request: Json): Json {
  const body: Json = { model: request.model, max_tokens: request.max_output_tokens ?? 4096 }
  if (request.system) body.system = request.system.map(textBlock)
  body.messages = request.messages.map(anthropicMessage)
  if (request.tools) {
    body.tools = request.tools.map(({ name, description, parameters, strict }: Json) => {
      const tool: Json = { name, description, input_schema: parameters }
      if (strict !== undefined) tool.strict = strict
      return tool
    })
  }
  const choice = toolChoice(request.tool_choice)
  if (choice) body.tool_choice = choice
  if (request.temperature !== undefined) body.temperature = request.temperature
  if (request.top_p !== undefined) body.top_p = request.top_p
  if (request.stop) body.stop_sequences = request.stop
  if (request.stream !== undefined) body.stream = request.stream
  return body
}

function anthropicMessage({ role, parts }: Json): Json {
  const content = []
  for (const part of parts) {
    switch (part.type) {
      case 'text':
        content.push(textBlock(part))
        break
      case 'tool_call': {
        content.push({ type: 'tool_use', id: part.id, name: part.name, input: callInput(part.arguments) })
        break
      }
      case 'tool_result': {
        const block: Json = { type: 'tool_result', tool_use_id: part.id, content: part.parts.map(textBlock) }
        if (part.is_error) block.is_error = true
        content.push(block)
        break
      }
      case 'opaque':
        content.push(part.body)
        break
    }
  }
  return { role, content }
}

function textBlock({ text, cache }: Json): Json {
  return cache ? { type: 'text', text, cache_control: { type: 'ephemeral', ttl: cache.ttl } } : { type: 'text', text }
}

function callInput(text: string): Json {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { input: text }
  } catch {
    return text ? { input: text } : {}
  }
}

function toolChoice(choice: Json): Json {
  if (choice === undefined) return undefined
  if (choice === 'required') return { type: 'any' }
  return choice.name ? { type: 'tool', name: choice.name } : { type: choice }
}

/** A reply of the Gemini API as a neutral reply. */
export function geminiReply(reply: Json): Json {
  const candidate = reply.candidates?.[0]
  const result: Json = { id: reply.responseId, model: reply.modelVersion }
  result.parts = (candidate?.content?.parts ?? []).map(replyPart)
  const reason = candidate?.finishReason
  if (reason) {
    result.finish = finishes[reason] ?? 'stop'
    result.finish_raw = reason
  }
  const usage = geminiUsage(reply.usageMetadata)
  if (usage) result.usage = usage
  return result
}

const finishes: Record<string, string> = {
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
}

function replyPart(part: Json): Json {
  let made: Json
  if (part.text !== undefined) made = { type: part.thought ? 'reasoning' : 'text', text: part.text }
  else if (part.functionCall) {
    const { id, name, args } = part.functionCall
    made = { type: 'tool_call', id, name, arguments: JSON.stringify(args ?? {}) }
  } else if (part.inlineData) {
    made = { type: 'image', data: part.inlineData.data, media_type: part.inlineData.mimeType }
  } else made = { type: 'opaque', body: part }
  if (part.thoughtSignature) made.signature = part.thoughtSignature
  return made
}

function geminiUsage(counted: Json): Json {
  if (!counted?.promptTokenCount) return undefined
  const usage: Json = {
    input: counted.promptTokenCount + (counted.toolUsePromptTokenCount ?? 0) - (counted.cachedContentTokenCount ?? 0),
  }
  if (counted.cachedContentTokenCount) usage.cache_read = counted.cachedContentTokenCount
  if (counted.candidatesTokenCount !== undefined) usage.output = counted.candidatesTokenCount
  if (counted.thoughtsTokenCount) usage.reasoning = counted.thoughtsTokenCount
  usage.modes = []
  return usage
}

/** A delta of a content block in a stream of the Messages API as a neutral event. */
export function anthropicDelta({ index, delta }: Json): Json {
  switch (delta.type) {
    case 'text_delta':
      return { at: index, text: delta.text }
    case 'input_json_delta':
      return { at: index, tool: { arguments: delta.partial_json } }
    case 'thinking_delta':
      return { at: index, reasoning: { text: delta.thinking } }
    case 'signature_delta':
      return { at: index, reasoning: { signature: delta.signature } }
  }
}

/** A chunk of a stream of the Gemini API as neutral events. */
export function geminiChunk(chunk: Json): Json {
  const candidate = chunk.candidates?.[0]
  const facts: Json = { id: chunk.responseId, model: chunk.modelVersion }
  const usage = geminiUsage(chunk.usageMetadata)
  if (usage) facts.usage = usage
  const events = [facts]
  for (const part of candidate?.content?.parts ?? []) {
    if (part.text !== undefined) {
      const event: Json = part.thought ? { reasoning: { text: part.text } } : { text: part.text }
      if (part.thoughtSignature) event.signature = part.thoughtSignature
      events.push(event)
    } else if (part.functionCall) {
      const { id, name, args } = part.functionCall
      events.push({ tool: { id, name, arguments: args ?? {} } })
    }
  }
  if (candidate?.finishReason) events.push({ finish: finishes[candidate.finishReason] ?? 'stop' })
  return events
}

/** A chunk of text in a stream of Chat Completions as a neutral event. */
export function chatChunk({ id, model, created, choices }: Json): Json {
  const event: Json = { id, model, created }
  const text = choices[0]?.delta.content
  if (text) event.text = text
  return event
}
