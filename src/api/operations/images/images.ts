import type { JsonObject } from '../../../core/json.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import { fieldsOf, oneOf } from '../../check.ts'
import type { OperationApi, OperationBody } from '../../operation-api.ts'
import { formFields, formFlag, parsedJson, routingOfForm } from '../form-fields.ts'
import { jsonOf, readFields } from '../shared.ts'
import {
  countImages,
  estimateImages,
  imageEvents,
  imagesIn,
  itemsOf,
  linksIn,
  maxUsageOfImages,
  withFetched,
  writeImages,
} from './reply.ts'
import {
  checkImageModel,
  type ImageInputs,
  imageFieldNames,
  imageNumbers,
  inputsOfForm,
  inputsOfJson,
  maxImageBytes,
  maxImages,
  readImageFields,
} from './request.ts'

/** Behaviour that generations and edits have in common. */
const imageApi: Omit<OperationApi, 'operation' | 'read' | 'events'> = {
  json: true,
  wants: ({ stream }) => (stream ? 'events' : 'json'),
  checkModel: checkImageModel,
  maxUsage: maxUsageOfImages,
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

/** Image generations: a text in, images out. */
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

/** Image edits: images and a text in, images out. */
export const imageEdits: OperationApi = {
  ...imageApi,
  operation: 'image_edit',
  form: { fileBytes: maxImageBytes, files: maxImages + 1, bytes: 4 * maxImageBytes },
  needs: ['images'],
  read(body) {
    if (!('fields' in body)) {
      const json = jsonOf(body)
      return readEdit(json, inputsOfJson(json))
    }
    const json = jsonOfForm(body)
    return readEdit(json, inputsOfForm(body.files, json))
  },
  events: imageEvents('image_edit'),
}

function readEdit(json: JsonObject, inputs: ImageInputs): OperationRequest {
  const { fields, stream } = readImageFields(json)
  const fidelity = fieldsOf<JsonObject>(json, [['input_fidelity', oneOf(['high', 'low'])]])
  const { stream: _, image: __, images: ___, mask: ____, ...members } = json
  const all = { ...fields, ...fidelity, ...inputs.fields }
  return readFields('image_edit', members, { fields: all, files: inputs.files, stream })
}

const known = [...imageFieldNames, 'input_fidelity', 'model', 'user', 'requesty']

/** A form as a JSON body: numbers and flags are texts there. */
function jsonOfForm({ fields }: Extract<OperationBody, { fields: unknown }>): JsonObject {
  const { routing, others } = routingOfForm(fields)
  const body = { ...formFields(others, { lists: [], known }), ...routing }
  for (const name of imageNumbers) {
    const { [name]: value } = body
    if (typeof value === 'string' && /^-?\d{1,10}$/.test(value)) body[name] = Number(value)
  }
  if (body.stream !== undefined) body.stream = formFlag(body.stream, 'stream')
  if (typeof body.requesty === 'string') body.requesty = parsedJson(body.requesty) ?? body.requesty
  return body
}
