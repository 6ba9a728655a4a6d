import type { StreamFormat } from '../../wire/frames.ts'
import type { BodyForm } from '../operation.ts'

/** An endpoint as files write it. */
export type OperationFile = {
  path?: string
  body?: BodyForm
  takes?: ('links' | 'file_ids')[]
  request?: { [section: string]: string }
  query?: string
  answer?: 'json' | 'bytes' | 'events'
  reply?: string
  usage?: string
  patch?: { request?: string; reply?: string; event?: string }
  stream?: {
    path?: string
    format?: StreamFormat
    event_field?: string
    done?: string
    events?: { [name: string]: string }
  }
  unsupported?: (string | { field: string; when?: string })[]
  batch?: { field: string; size: number }
  job?: JobFile
  upload?: {
    path: string
    body?: 'bytes' | 'multipart'
    field?: string
    fields?: { [name: string]: string }
    reference: string
  }
}

/** A job as files write it. */
export type JobFile = {
  id?: string
  poll?: string
  hosts?: string[]
  done?: string
  failed?: string
  cancel?: string
  every?: string
  within?: string
}
