import { errorBody } from '../../core/errors.ts'
import type { ClientApi } from '../client-api.ts'
import { countedBody, droppedByEdit, editReply, editRequest } from './edit.ts'
import { wireNames } from './fields.ts'
import { readRequest } from './read.ts'
import { heldIds } from './reply-members.ts'
import { openStream } from './stream.ts'
import { writeReply } from './write.ts'

/** The Responses API. */
export const responses: ClientApi = {
  api: 'responses',
  read: readRequest,
  wireNames,
  editRequest,
  droppedByEdit,
  writeReply,
  editReply,
  openStream,
  writeError: errorBody,
  heldIds,
  counting: {
    defaults: {},
    body: countedBody,
    write: (count) => ({ object: 'response.input_tokens', ...count }),
  },
}
