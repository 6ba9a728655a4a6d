type Value = string | number | boolean | null

/**
 * A difference between two answers. `path` is that of a member, with `[]` for any item of a list; `explained` is why it is expected, missing
 * where it is not.
 */
export type Difference = {
  kind: 'failure' | 'status' | 'stream' | 'value' | 'only_here' | 'only_there' | 'cost' | 'dropped'
  path?: string
  here?: Value
  there?: Value
  explained?: string
}

/** Facts about the answers that explain further differences. */
export type Facts = { isError: boolean; textDiffers: boolean; usageDiffers: boolean; exact: boolean }
