/** Limits of what one organization can create. What it has beyond them stays; an operator's commands are not limited. */
export type CreationLimits = {
  keys: number
  groups: number
  aliases: number
  policies: number
  /** Targets of one policy. */
  targets: number
  /** Labels of one key. */
  labels: number
  /** Characters of the value of a label. */
  labelLength: number
  /** Names in one list of models: of a key, or of those that are approved. */
  models: number
  /** Changes through the management API in an hour: each is an entry in the log of changes, which stays. */
  changesPerHour: number
  /** Stored responses, and their bytes. The oldest ones beyond are deleted. */
  responses: number
  responseBytes: number
}

export const defaultCreationLimits: CreationLimits = {
  keys: 10_000,
  groups: 1_000,
  aliases: 2_000,
  policies: 500,
  targets: 64,
  labels: 64,
  labelLength: 1_000,
  models: 5_000,
  changesPerHour: 10_000,
  responses: 1_000_000,
  responseBytes: 20 * 1024 ** 3,
}
