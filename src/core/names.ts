/** A named list of targets, asked in their order; a target is `<provider>/<model>`. */
export type Policy = { id: string; description: string; targets: readonly string[] }

/** What an organization asks of those who get its data; what is missing is not asked. */
export type DataRules = {
  /** Where models may be hosted: `eu`, `us`, `global` … */
  geolocation?: string[]
  /** false: only models whose provider keeps nothing. */
  data_retention?: false
  /** false: only models whose provider trains on nothing. */
  data_used_for_training?: false
}
