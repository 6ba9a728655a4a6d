import { errorBody } from '../../core/errors.ts'
import type { ClientApi } from '../client-api.ts'
import { hasAlternativeNames } from './alternative-names.ts'
import { droppedByEdit, editReply, editRequest } from './edit.ts'
import { wireNames } from './fields.ts'
import { readRequest } from './read.ts'
import { heldIds } from './reply-members.ts'
import { openStream } from './stream.ts'
import { writeReply } from './write.ts'

/** The Chat Completions API. */
export const chat: ClientApi = {
  api: 'chat',
  read: readRequest,
  wireNames,
  editRequest,
  droppedByEdit,
  hasAlternativeNames,
  writeReply,
  editReply,
  openStream,
  heldIds,
  writeError: errorBody,
}
