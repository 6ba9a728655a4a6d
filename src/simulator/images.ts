import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import { SimulatedError } from './request.ts'
import { otherModels, tokensOf } from './words.ts'

/** The body of an edit as that of a generation, and how many files it has. Throws SimulatedError. */
export async function editOf(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<{ body: object; files: number }> {
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData().catch(() => {
    throw new SimulatedError(400, 'We could not parse the form of your request.')
  })
  const { n = '1', ...texts } = Object.fromEntries([...form].filter(([, value]) => typeof value === 'string'))
  const files = [...form.values()].filter((value) => typeof value !== 'string').length
  if (files === 0) throw invalid('image')
  return { body: { ...texts, n: Number(n) }, files }
}

/** Replies to a body of the Images API with images of one colour, which the prompt decides. Throws SimulatedError. */
export function imagesOf(body: unknown, { created, files = 0 }: { created: number; files?: number }): object {
  const { model, prompt, n = 1, size = '1024x1024' } = Object(body) as { [name: string]: unknown }
  if (model !== otherModels.image) {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  if (typeof prompt !== 'string' || prompt === '') throw invalid('prompt')
  if (!Number.isInteger(n) || (n as number) < 1 || (n as number) > 10) throw invalid('n')
  const [, width, height] = /^(\d{2,4})x(\d{2,4})$/.exec(size === 'auto' ? '1024x1024' : String(size)) ?? []
  if (width === undefined) throw invalid('size')
  const sides = { width: Number(width), height: Number(height) }
  if (Math.max(sides.width, sides.height) > maxSide) throw invalid('size')
  const data = Array.from({ length: n as number }, (_, index) => ({
    b64_json: picture(sides, `${prompt} ${index}`).toString('base64'),
  }))
  const read = { text_tokens: tokensOf(prompt).length, image_tokens: 256 * files }
  const input = read.text_tokens + read.image_tokens
  const drawn = Math.ceil((sides.width * sides.height) / 1_024) * data.length
  const usage = {
    input_tokens: input,
    input_tokens_details: read,
    output_tokens: drawn,
    output_tokens_details: { text_tokens: 0, image_tokens: drawn },
    total_tokens: input + drawn,
  }
  return {
    created,
    data,
    background: 'opaque',
    output_format: 'png',
    quality: 'low',
    size: `${width}x${height}`,
    usage,
  }
}

/** Pixels. */
const maxSide = 4_096

/** A PNG of one colour: one entry in its palette, and one bit for each pixel. */
function picture({ width, height }: { width: number; height: number }, seed: string): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([1, 3], 8)
  const colour = createHash('sha256').update(seed).digest().subarray(0, 3)
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height))
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', colour),
    chunk('IDAT', rows),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const length = Buffer.alloc(4)
  const check = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}

function invalid(param: string): SimulatedError {
  return new SimulatedError(400, `Invalid value for '${param}'.`, { param, code: 'invalid_value' })
}
