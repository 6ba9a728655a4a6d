import { fileField } from '../../api/operations/form-fields.ts'
import { fileOfData } from '../../api/operations/images/request.ts'
import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { OperationRequest, UploadedFile } from '../../core/operation.ts'
import type { OperationEndpoint } from '../../manifest/operation.ts'
import type { CallMedia } from '../../upstream/files/inline.ts'

/**
 * Returns a request with its pictures as an endpoint takes them: addresses become files where it takes none. Throws RouterError 400 for
 * a file id that means nothing to it, and for an address without a picture.
 */
export async function inputsFor(
  request: OperationRequest,
  { takes = [] }: OperationEndpoint,
  media: CallMedia,
): Promise<OperationRequest> {
  const { images, mask } = request.fields
  if (request.operation !== 'image_edit' || !Array.isArray(images)) return request
  const named = [...images.map((image, index) => [`images[${index}]`, image]), ['mask', mask]] as [string, Json][]
  if (!takes.includes('file_ids')) refuseFileIds(named)
  const links = takes.includes('links') ? [] : named.flatMap(([, image]) => linkOf(image) ?? [])
  if (links.length === 0) return request
  const fetched = await media.fetchAll(links)
  const files: UploadedFile[] = [...request.files]
  const asFile = (image: Json, path: string): JsonObject => {
    const link = linkOf(image)
    const data = link === undefined ? undefined : fetched.get(link)?.data
    if (data === undefined) return image as JsonObject
    files.push(fileOfData(data, `${path}.image_url`))
    return fileField(files.at(-1) as UploadedFile, files.length - 1)
  }
  const fields = {
    ...request.fields,
    images: images.map((image, index) => asFile(image, `images[${index}]`)),
    ...(mask !== undefined && { mask: asFile(mask, 'mask') }),
  }
  return { ...request, fields, files }
}

function refuseFileIds(named: readonly [path: string, image: Json][]): void {
  const found = named.find(([, image]) => isObject(image) && image.file_id !== undefined)
  if (!found) return
  const param = `${found[0]}.file_id`
  const message = `'${param}' names a file that only its own provider has: send a data URL or an http(s) URL.`
  throw new RouterError('invalid_request', message, { param })
}

function linkOf(image: Json): string | undefined {
  return isObject(image) && typeof image.image_url === 'string' ? image.image_url : undefined
}
