import type { OperationApi } from '../../operation-api.ts'
import { jsonOf, readFields } from '../shared.ts'
import { linksIn, withFetched } from './image-data.ts'
import { checkImageModel, readImageFields } from './image-fields.ts'
import { imageEvents, imagesIn, writeImages } from './image-reply.ts'
import { countImages, estimateImages, itemsOf, mostOfImages } from './image-usage.ts'

/** What generations and edits have in common. */
export const imageApi: Omit<OperationApi, 'operation' | 'read' | 'events'> = {
  json: true,
  wants: ({ stream }) => (stream ? 'events' : 'json'),
  checkModel: checkImageModel,
  most: mostOfImages,
  count: countImages,
  estimate: estimateImages,
  check: (reply) => void imagesIn(reply),
  write: writeImages,
  join: (replies) => ({ ...replies[0], data: replies.flatMap(itemsOf) }),
  downloads: {
    links: (reply, { fields, stream }) => linksIn(itemsOf(reply), stream ? 'b64_json' : fields.response_format),
    put: (reply, files) => ({ ...reply, data: withFetched(itemsOf(reply), files) }),
  },
}

/** Image generations: a text in, pictures out. */
export const images: OperationApi = {
  ...imageApi,
  operation: 'image',
  read(body) {
    const json = jsonOf(body)
    const { fields, stream } = readImageFields(json)
    const { stream: _, ...members } = json
    return readFields('image', members, { fields, stream })
  },
  events: imageEvents('image_generation'),
}
