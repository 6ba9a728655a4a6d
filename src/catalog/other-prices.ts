/** The prices beside those of a tier that a catalog entry may have, in USD: by the unit that each is for. */
export const otherPrices = [
  'cached_audio_token',
  'citation_token',
  'code_execution_per_call',
  'container_per_gb',
  'drawing_input_token',
  'drawing_output_token',
  'file_search_per_call',
  'input_audio_token',
  'input_image_token',
  'maps_grounding_per_call',
  'output_audio_token',
  'output_image_token',
  'page_visit_per_call',
  'per_character',
  'per_image',
  'per_input_image',
  'per_megapixel',
  'per_query',
  'per_request',
  'per_request_high',
  'per_request_low',
  'per_request_medium',
  'per_second',
  'reasoning_token',
  'web_search_per_call',
  'web_search_per_call_high',
  'web_search_per_call_low',
  'web_search_per_call_medium',
  'x_search_per_call',
] as const

/** The name of one of these prices. */
export type OtherPrice = (typeof otherPrices)[number]

/** The prices of an entry; a name that is not known has no meaning, and `check` refuses it. */
export type OtherPrices = { [name in OtherPrice]?: number }
