import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { UploadedFile } from '../core/upload.ts'
import type { OperationContext } from '../manifest/run/translate-operation.ts'
import {
  bytesBody,
  formBody,
  jsonBody,
  type MultipartEntry,
  multipartBody,
  type OutgoingBody,
} from './outgoing-body.ts'

/** A body in the form that an endpoint takes, with the files that stand in it. Throws RouterError. */
export function outgoingBody(context: OperationContext, body: JsonObject): OutgoingBody {
  const { endpoint, request, provider } = context
  const { files } = request
  switch (endpoint.body) {
    case 'json':
      return jsonBody(body, files)
    case 'multipart':
      return multipartBody(entriesOf(body).map(([name, value]) => entryOf(name, value, files)))
    case 'multipart_or_json': {
      const hasFiles = entriesOf(body).some(([, value]) => fileIn(value, files))
      return outgoingBody({ ...context, endpoint: { ...endpoint, body: hasFiles ? 'multipart' : 'json' } }, body)
    }
    case 'form':
      return formBody(entriesOf(body).map(([name, value]) => [name, textOf(value)]))
    case 'bytes': {
      const file = Object.values(body)
        .map((value) => fileIn(value, files))
        .find((found) => found)
      if (file) return bytesBody(file)
      const message = `The request could not be translated for ${provider.slug}: it has no file to send.`
      throw new RouterError('invalid_request', message, { param: 'file' })
    }
  }
}

/** The fields of a form; a list is several of the name that OpenAI's forms have for lists, unless the name says it already. */
function entriesOf(body: JsonObject): [name: string, value: Json][] {
  return Object.entries(body).flatMap(([name, value]): [string, Json][] => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) return [[name, value]]
    const repeated = name.endsWith('[]') ? name : `${name}[]`
    return value.map((item) => [repeated, item])
  })
}

function entryOf(name: string, value: Json, files: readonly UploadedFile[]): MultipartEntry {
  const file = fileIn(value, files)
  if (!file) return { name, value: textOf(value) }
  const { filename, mediaType, size } = file
  return { name, filename: filename || 'file', mediaType, size, read: () => file.read() }
}

/** The file that a value stands for. */
function fileIn(value: Json | undefined, files: readonly UploadedFile[]): UploadedFile | undefined {
  return isObject(value) && typeof value.$file === 'number' ? files[value.$file] : undefined
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
