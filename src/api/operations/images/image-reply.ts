import { errorBody } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import { completionTokens, promptTokens, type Usage } from '../../../core/usage.ts'
import type { OperationEvents, OperationFacts } from '../../operation-api.ts'
import { unreadableReply } from '../shared.ts'
import { imageAs } from './image-data.ts'
import { itemsOf, sizeOf } from './image-usage.ts'

/** The images of a reply. Throws RouterError for one without images. */
export function imagesIn(reply: JsonObject): JsonObject[] {
  const images = itemsOf(reply)
  if (images.length === 0) throw unreadableReply('no images')
  return images
}

/** A reply with its images as the client wants them. Throws RouterError for one without images. */
export function writeImages(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { created, data: _, usage: __, model: ___, ...others } = reply
  return {
    created: typeof created === 'number' ? created : facts.now,
    data: imagesIn(reply).map((image) => imageAs(image, facts.request.fields.response_format)),
    ...others,
    usage: imageUsage(facts.usage, facts.costUsd),
  }
}

/** Tokens of text and of images, both ways. */
function imageUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const input = promptTokens(usage)
  const output = completionTokens(usage)
  const { input_image: read = 0, output_image: drawn = 0 } = usage
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input - read, image_tokens: read },
    output_tokens: output,
    output_tokens_details: { image_tokens: drawn, text_tokens: output - drawn },
    total_tokens: input + output,
    ...(costUsd !== undefined && { cost: costUsd }),
  }
}

/** The events of generations or edits, whose types begin with `name`. */
export function imageEvents(name: 'image_generation' | 'image_edit'): OperationEvents {
  const completed = `${name}.completed`
  return {
    ofWhole: (reply, { fields }) => {
      const { created, data: _, usage: __, model: ___, ...others } = reply
      const images = imagesIn(reply)
      const { size = 'auto', quality = 'auto', background = 'auto', output_format = 'png' } = fields
      const facts = { created_at: created ?? null, size, quality, background, output_format, ...others }
      return images.map((image) => ({ type: completed, ...imageAs(image, 'b64_json'), ...facts }))
    },
    isEnd: ({ type }) => type === completed,
    write: (event, { usage, costUsd, now }) => {
      if (event.type !== completed) return event
      const created_at = event.created_at ?? now ?? Math.floor(Date.now() / 1_000)
      return { ...event, created_at, ...(usage && { usage: imageUsage(usage, costUsd) }) }
    },
    named: true,
    fail: errorBody,
    collect: (known, event) => {
      if (event.type !== completed) return { ...known, begun: true }
      const image = { ...sizeOf(event) }
      const { size = null, quality = null } = event
      return { data: [...itemsOf(known), image], size, quality }
    },
  }
}
