import type { OperationApi } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { type MediaServices, openCallMedia } from '../../upstream/files/inline.ts'

/** Downloader of the files of a reply. */
export type ReplyDownloads = {
  call: { api: OperationApi; signal: AbortSignal }
  request: OperationRequest
  media: MediaServices
}

/** Returns a reply with the files that the client wants of it. Throws RouterError `provider_unreadable` for one that cannot be fetched. */
export async function downloadedReply(
  reply: JsonObject,
  { call: { api, signal }, request, media }: ReplyDownloads,
): Promise<JsonObject> {
  const { downloads } = api
  const links = downloads?.links(reply, request) ?? []
  if (!downloads || links.length === 0) return reply
  const files = openCallMedia(media, { param: 'response_format', signal })
  try {
    return downloads.put(reply, await files.fetchAll(links))
  } catch (thrown) {
    const error = asRouterError(thrown)
    if (error.code !== 'invalid_request') throw error
    const message = `The provider's answer has the address of a file that the router could not fetch. ${error.message}`
    throw new RouterError('provider_unreadable', message, { cause: error })
  }
}
