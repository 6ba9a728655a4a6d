import type { ClientApi } from '../client-api.ts'
import { droppedByEdit, editReply, editRequest } from './edit.ts'
import { errorStatus, writeError } from './errors.ts'
import { wireNames } from './fields.ts'
import { readRequest } from './read.ts'
import { heldIds } from './reply-members.ts'
import { openStream } from './stream.ts'
import { writeReply } from './write.ts'

/** The Messages API. */
export const messages: ClientApi = {
  api: 'messages',
  read: readRequest,
  wireNames,
  editRequest,
  droppedByEdit,
  writeReply,
  editReply,
  openStream,
  writeError,
  errorStatus,
  requestIdHeader: 'request-id',
  versionHeader: 'anthropic-version',
  heldIds,
  counting: { defaults: { max_tokens: 0 }, body: (body) => body, write: (count) => count },
  forwardedHeaders: { 'anthropic-version': 'replace', 'anthropic-beta': 'append' },
  keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
}
