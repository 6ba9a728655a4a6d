import { describe, expect, test } from 'vitest'
import type { MediaPart, Part } from '../../src/core/parts.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import type { Limits } from '../../src/manifest/limits.ts'
import { fitRequest } from '../../src/manifest/run/fit-request.ts'
import { mediaExcess } from '../../src/manifest/run/media-limits.ts'

const asked = (...messages: Part[][]): NeutralRequest => ({
  model: 'maker/m',
  messages: messages.map((parts): Message => ({ role: 'user', parts })),
  origin: { api: 'chat', body: {} },
})
const image = (more: Partial<MediaPart> = {}): MediaPart => ({
  type: 'image',
  data: 'aGk=',
  media_type: 'image/png',
  ...more,
})
const bytes = (count: number) => Buffer.alloc(count).toString('base64')

/** The header of a PNG of this size. */
const png = (width: number, height: number) => {
  const data = Buffer.alloc(32)
  data.write('89504e470d0a1a0a', 'hex')
  data.writeUInt32BE(width, 16)
  data.writeUInt32BE(height, 20)
  return image({ data: data.toString('base64') })
}

const pictures = { type: 'tool_result', id: 'a', parts: [image(), image()] } as const
const cases: [string, Limits, Part[][], Part[][], string][] = [
  [
    'a count',
    { images: { count: 2 } },
    [[image()], [image()]],
    [[image()], [pictures as never]],
    'at most 2 images, not 3',
  ],
  [
    'a count in a message',
    { images: { message_count: 1 } },
    [[image()], [image()]],
    [[image(), image()]],
    'at most 1 images in a message, not 2',
  ],
  [
    'a size',
    { images: { bytes: 10 } },
    [[image({ data: bytes(10) })]],
    [[image({ data: bytes(11) })]],
    'images of at most',
  ],
  [
    'types',
    { images: { types: ['jpeg'] } },
    [[image({ media_type: 'image/JPG; q=1' })]],
    [[image()]],
    'images of the types jpeg, not png',
  ],
  [
    'a side',
    { images: { side: 8_000 } },
    [[png(8_000, 1)]],
    [[png(1, 8_001)]],
    'at most 8000 pixels on a side, not 1 x 8001',
  ],
  ['pixels', { images: { pixels: 100 } }, [[png(10, 10)]], [[png(10, 11)]], 'at most 100 pixels, not 10 x 11'],
  [
    'documents',
    { files: { count: 0 } },
    [[{ type: 'file', data: 'aGk=', media_type: 'text/csv' }]],
    [[{ type: 'file', data: 'aGk=', media_type: 'application/pdf' }]],
    'at most 0 files, not 1',
  ],
  [
    'all media',
    { media: { bytes: 8 } },
    [[image(), { type: 'audio', data: 'aGk=' }]],
    [[image(), image(), image()]],
    'of files as data',
  ],
]

describe('media that a provider does not take', () => {
  test.each(cases)('%s is a limit', (_name, limits, inside, outside, reason) => {
    expect(mediaExcess(asked(...inside), limits)).toBeUndefined()
    expect(mediaExcess(asked(...outside), limits)?.reason).toContain(reason)
  })

  test('what is given by URL has no known size or type', () => {
    const linked: MediaPart = { type: 'image', url: 'https://a.com/b' }
    expect(
      mediaExcess(asked([linked]), { images: { bytes: 1, types: ['png'], side: 1 }, media: { bytes: 1 } }),
    ).toBeUndefined()
  })

  test('a refusal says which part of the request can be left out', () => {
    const refusal = (limits: Limits, part: Part) => {
      try {
        const rules = { limits, history: {}, editedHistory: {} }
        fitRequest(asked([part]), { rules, traits: {}, edited: true })
      } catch (thrown) {
        return thrown
      }
      return undefined
    }
    expect(refusal({ images: { types: ['jpeg'] } }, image())).toMatchObject({
      code: 'invalid_request',
      rejected: 'image',
    })
    expect(refusal({ images: { bytes: 1 } }, image())).toMatchObject({ rejected: 'media_size', param: 'messages' })
    const pdf: Part = { type: 'file', data: 'aGk=', media_type: 'application/pdf' }
    expect(refusal({ files: { types: ['docx'] } }, pdf)).toMatchObject({ rejected: 'document' })
  })
})
