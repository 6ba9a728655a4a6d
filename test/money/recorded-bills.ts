/**
 * One recorded answer for each form of usage, priced by hand: its counts times the printed prices in USD per million
 * tokens times 1,000, which is nano-USD per token. The model is the one whose prices are used: that of the recording,
 * or one like it where that one is no longer sold.
 */
export const byHand: [case_: string, model: string, nanoUsd: number][] = [
  // Anthropic: input excludes the cache; a write costs 1.25 times, a read a tenth; thinking is in the output.
  [
    'anthropic-messages/cache-stream__anthropic.claude-sonnet-4-5',
    'anthropic/claude-sonnet-4-5',
    8 * 3000 + 12_963 * 3750 + 186 * 15_000,
  ],
  [
    'anthropic-messages/cache__anthropic.claude-3-5-sonnet',
    'anthropic/claude-sonnet-4-5',
    4 * 3000 + 1165 * 3750 + 207 * 15_000,
  ],
  [
    'anthropic-messages/cache__anthropic.claude-sonnet-5',
    'anthropic/claude-sonnet-5',
    2 * 2000 + 8295 * 2500 + 2836 * 200 + 11 * 10_000,
  ],
  [
    'anthropic-messages/citations-stream__anthropic.claude-haiku-4-5',
    'anthropic/claude-haiku-4-5',
    672 * 1000 + 39 * 5000,
  ],
  // Tokens of a compaction are not in the totals.
  [
    'anthropic-messages/compaction-stream__',
    'anthropic/claude-sonnet-4-6',
    (181 + 100) * 3000 + 55_096 * 300 + (8 + 83) * 15_000,
  ],
  ['anthropic-messages/compaction__', 'anthropic/claude-sonnet-4-6', (162 + 99_195) * 3000 + (11 + 81) * 15_000],
  // Ten searches at a cent.
  [
    'anthropic-messages/pause-turn-stream__',
    'anthropic/claude-sonnet-4-5',
    404_500 * 3000 + 943 * 15_000 + 10 * 10_000_000,
  ],
  ['anthropic-messages/pause-turn__', 'anthropic/claude-sonnet-4-5', 401_468 * 3000 + 792 * 15_000 + 10 * 10_000_000],
  [
    'anthropic-messages/reasoning-stream__anthropic.claude-sonnet-4-5',
    'anthropic/claude-sonnet-4-5',
    50 * 3000 + 93 * 15_000,
  ],
  // The advisor's own tokens are another model's: they are in no total, and not in this price.
  ['anthropic-messages/server-tool-other-stream__', 'anthropic/claude-sonnet-5', 2411 * 2000 + 145 * 10_000],
  ['anthropic-messages/stop-reason-length-stream__', 'anthropic/claude-haiku-4-5', 32 * 1000 + 16 * 5000],
  // Fetching a page has no fee.
  ['anthropic-messages/web-fetch-stream__', 'anthropic/claude-haiku-4-5', 3727 * 1000 + 115 * 5000],
  ['anthropic-messages/web-fetch__', 'anthropic/claude-sonnet-5', 4 * 2000 + 3522 * 2500 + 1150 * 200 + 113 * 10_000],
  [
    'anthropic-messages/web-search__anthropic.claude-sonnet-5',
    'anthropic/claude-sonnet-5',
    4 * 2000 + 11_107 * 2500 + 2836 * 200 + 155 * 10_000 + 10_000_000,
  ],

  // Azure: Grok counts what was cached beside the prompt where it is more than the prompt.
  ['azure-openai/cache__azure.grok', 'azure/grok-4-1-fast-non-reasoning', 10 * 200 + 161 * 50 + 213 * 500],
  ['azure-openai/stop-reason-length__azure.gpt-35', 'azure/gpt-35-turbo', 18 * 500 + 20 * 1500],
  ['azure-openai/text__azure.gpt-5-nano', 'azure/gpt-5-nano', 14 * 50 + 139 * 400],
  ['azure-openai/vision__azure.grok', 'azure/grok-4-1-fast-non-reasoning', (265 - 170) * 200 + 170 * 50 + 208 * 500],

  // Bedrock: a tenth more than global; input excludes the cache.
  [
    'bedrock-converse/cache-stream__bedrock.us.anthropic.claude-3-7',
    'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    12 * 3300 + 1028 * 330 + 250 * 16_500,
  ],
  [
    'bedrock-converse/cache__bedrock.us.anthropic.claude-sonnet-4-5',
    'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    14 * 3300 + 1503 * 4125 + 5 * 16_500,
  ],
  [
    'bedrock-converse/citations__bedrock.us.anthropic.claude-sonnet-5',
    'bedrock/us.anthropic.claude-sonnet-5',
    975 * 2200 + 34 * 11_000,
  ],

  // Cohere bills fewer tokens than it counts.
  ['cohere-v2/citations-stream__cohere.command-a-plus', 'cohere/command-a-plus-05-2026', 65 * 2500 + 63 * 10_000],
  ['cohere-v2/parallel-tools-stream__cohere.command-r__', 'cohere/command-r-08-2024', 62 * 150 + 28 * 600],
  ['cohere-v2/reasoning-stream__', 'cohere/command-a-reasoning-08-2025', 8 * 2500 + 50 * 10_000],
  ['cohere-v2/vision__cohere.command-a-vision', 'cohere/command-a-vision-07-2025', 522 * 2500 + 65 * 10_000],

  // DeepSeek: a hit costs a fiftieth.
  ['deepseek/cache__', 'deepseek/deepseek-v4-flash', 4 * 150 + 896 * 3 + 2 * 600],
  ['deepseek/parallel-tools-stream__', 'deepseek/deepseek-v4-flash', 404 * 150 + 48 * 600],
  ['deepseek/parallel-tools__deepseek.deepseek-reasoner', 'deepseek/deepseek-reasoner', 875 * 150 + 79 * 600],
  [
    'deepseek/reasoning-tools__deepseek.deepseek-reasoner',
    'deepseek/deepseek-reasoner',
    51 * 150 + 512 * 3 + 116 * 600,
  ],

  // Gemini: thoughts are not in the output count, tool results not in the prompt count.
  [
    'gemini/audio-in__google.gemini-3-flash-preview',
    'google/gemini-3-flash-preview',
    190 * 500 + 113 * 1000 + (28 + 175) * 3000,
  ],
  ['gemini/audio-out__', 'google/gemini-3-flash-preview', 11 * 500 + 111 * 3000],
  [
    'gemini/cache-stream__gemini.gemini-2.5-flash',
    'google/gemini-3-flash-preview',
    (1087 - 1081) * 500 + 1081 * 50 + 2 * 3000,
  ],
  [
    'gemini/cache__vertex.gemini-2.5-flash',
    'vertex/gemini-3-flash-preview',
    (9613 - 9602) * 500 + 9602 * 50 + (33 + 39) * 3000,
  ],
  [
    'gemini/code-execution-stream__google.gemini-2.5-flash__5621f0',
    'google/gemini-3-flash-preview',
    (32 + 764) * 500 + (477 + 240) * 3000,
  ],
  ['gemini/logprobs__vertex', 'vertex/gemini-3-flash-preview', 7 * 500 + (7 + 73) * 3000],
  ['gemini/stop-reason-length-stream__gemini.gemini-2.5-flash', 'google/gemini-3-flash-preview', 12 * 500 + 33 * 3000],
  ['gemini/stop-reason-length__google.gemini-2.5-pro', 'google/gemini-3.1-pro-preview', 15 * 2000 + 2 * 12_000],
  ['gemini/stop-reason-safety__', 'google/gemini-3-flash-preview', 14 * 500],
  // One query, or one prompt that searched.
  [
    'gemini/web-search__google.gemini-2.5-flash',
    'google/gemini-3-flash-preview',
    (10 + 73) * 500 + (30 + 109) * 3000 + 14_000_000,
  ],

  ['groq/parallel-tools__groq.llama-4-scout', 'groq/llama-3.3-70b-versatile', 779 * 590 + 65 * 790],
  ['groq/reasoning-stream__groq__', 'groq/openai/gpt-oss-120b', 17 * 150 + 1107 * 600],

  // Mistral: audio is not in the prompt count and has no price of its own here.
  ['mistral/audio-in__', 'mistral/voxtral-small-latest', (9 + 375) * 100 + 248 * 400],
  ['mistral/cache__mistral.mistral-tiny', 'mistral/voxtral-small-latest', 10 * 100 + 10 * 10 + 18 * 400],
  ['mistral/n-choices__', 'mistral/ministral-3b-latest', 8 * 100 + 10 * 100],

  ['ollama/parallel-tools-stream__', 'groq/openai/gpt-oss-120b', 218 * 150 + 306 * 600],

  // OpenAI: cached tokens, audio and reasoning are inside the totals.
  [
    'openai-chat/audio-in__openai.gpt-audio-mini',
    'azure/gpt-4o-mini-audio-preview-2024-12-17',
    16 * 150 + 43 * 10_000 + 123 * 600,
  ],
  ['openai-chat/audio-out__', 'azure/gpt-4o-mini-audio-preview-2024-12-17', 22 * 150 + 6 * 600 + 12 * 20_000],
  ['openai-chat/cache__openai.gpt-4o-mini', 'openai/gpt-4o-mini', (9 - 1) * 150 + 1 * 75 + 10 * 600],
  ['openai-chat/legacy-functions__openai.gpt-4__', 'openai/gpt-4', 82 * 30_000 + 16 * 60_000],
  ['openai-chat/parallel-tools-stream__openai.gpt-5', 'openai/gpt-5', 190 * 1250 + 379 * 10_000],
  ['openai-chat/stop-reason-length__openai.gpt-5.6-sol', 'openai/gpt-5.6-sol', 3 * 4000 + 1217 * 5000 + 100 * 20_000],

  ['openai-compatible/reasoning-stream__vercel-gateway.gpt-5', 'openai/gpt-5', 19 * 1250 + 93 * 10_000],
  [
    'openai-compatible/reasoning__vercel-gateway.gemini-3-pro',
    'google/gemini-3.1-pro-preview',
    // 232 tokens of reasoning stand beside the output: the provider's own figure is the same.
    9 * 2000 + (52 + 232) * 12_000,
  ],
  ['openai-compatible/reasoning-tools-stream__ollama', 'groq/openai/gpt-oss-120b', 300 * 150 + 45 * 600],
  ['openai-compatible/stream__vercel-gateway.claude-sonnet-4', 'anthropic/claude-sonnet-4-5', 16 * 3000 + 36 * 15_000],

  // The provider counted nothing of the call.
  ['openai-responses/apply-patch-call-stream__', 'openai/gpt-5.1', 24 * 1250 + 14 * 10_000],
  ['openai-responses/cache__openai.gpt-5.2', 'openai/gpt-5.2', (4565 - 4352) * 1750 + 4352 * 175 + 5 * 14_000],
  [
    'openai-responses/code-execution-stream__openai.gpt-5-nano',
    'openai/gpt-5-nano',
    1246 * 50 + 676 * 400 + 30_000_000,
  ],
  ['openai-responses/compaction__openai.gpt-4.1', 'openai/gpt-4.1', 847 * 2000 + 1179 * 8000],
  // A search in files is a quarter of a cent, one on the web a cent.
  ['openai-responses/file-search__openai.gpt-4o', 'openai/gpt-4o', 870 * 2500 + 30 * 10_000 + 2_500_000],
  ['openai-responses/web-search__openai.gpt-4.1__ffa90c', 'openai/gpt-4.1', 319 * 2000 + 650 * 8000 + 10_000_000],
  [
    'openai-responses/image-out-stream__',
    'openai/gpt-5.4',
    (2941 - 1920) * 2500 + 1920 * 250 + 1249 * 15_000 + 408 * 40_000,
  ],
  ['openai-responses/parallel-tools__xai.grok-4.3', 'xai/grok-4.3', (303 - 128) * 1250 + 128 * 200 + 272 * 2500],
  ['openai-responses/reasoning-stream__openrouter.gpt-oss-20b', 'openrouter/openai/gpt-oss-20b', 78 * 18 + 37 * 90],
  ['openai-responses/tool-loop-stream__bedrock-mantle', 'openai/gpt-5.6-luna', (158 - 43) * 200 + 43 * 250 + 32 * 1200],
  ['openai-responses/tool-loop__bedrock-mantle', 'openai/gpt-5.6-luna', 2 * 200 + 107 * 250 + 5 * 1200],

  [
    'openrouter/annotations__openrouter.gpt-5.1-codex-mini__a409b8',
    'openrouter/openai/gpt-5.1-codex-mini',
    31 * 250 + 80 * 2000,
  ],
  // 15 x 269 + 8 x 134.5 + 12 x 400 = 9,911: half a nano-dollar never comes about.
  ['openrouter/cache__openrouter.deepseek-v3.2', 'openrouter/deepseek/deepseek-v3.2', 15 * 260 + 8 * 130 + 12 * 380],
  [
    'openrouter/parallel-tools-stream__openrouter.gemini',
    'openrouter/google/gemini-3.1-flash-lite-preview',
    157 * 250 + 32 * 1500,
  ],
  [
    'openrouter/parallel-tools__openrouter.grok-4.1-fast',
    'openrouter/anthropic/claude-haiku-4.5',
    (445 - 151) * 1000 + 151 * 100 + 278 * 5000,
  ],
  ['openrouter/pdf__openrouter.gpt-4.1-mini', 'openrouter/openai/gpt-4.1-mini', 23 * 400 + 48 * 1600],
  [
    'openrouter/reasoning-tools-stream__openrouter.claude-haiku-4.5',
    'openrouter/anthropic/claude-haiku-4.5',
    626 * 1000 + 106 * 5000,
  ],
  [
    'openrouter/stream__openrouter.gpt-4.1-mini__a7e16e',
    'openrouter/openai/gpt-4.1-mini',
    8174 * 400 + 30 * 1600 + 10_000_000,
  ],
  [
    'openrouter/tools__openrouter.claude-sonnet-4.5',
    'openrouter/anthropic/claude-sonnet-4.5',
    568 * 3000 + 48 * 15_000,
  ],
  [
    'openrouter/web-search-stream__openrouter.deepseek-chat',
    'openrouter/openai/gpt-4.1-mini',
    2317 * 400 + 53 * 1600 + 10_000_000,
  ],

  // Perplexity: half a cent for the request, whatever it finds.
  ['perplexity/stream__perplexity.sonar', 'perplexity/sonar', 7 * 1000 + 1 * 1000 + 5_000_000],
  ['perplexity/stream__perplexity__', 'perplexity/sonar-pro', 10 * 3000 + 336 * 15_000 + 6_000_000],
  ['perplexity/structured__perplexity.sonar', 'perplexity/sonar', 20 * 1000 + 5 * 1000 + 5_000_000],

  ['together/stream__together.llama-3.3-70b', 'together/meta-llama/Llama-3.3-70B-Instruct-Turbo', (45 + 3) * 880],

  // xAI: reasoning is not in the completion count.
  ['xai/parallel-tools-stream__xai.grok-4-fast', 'xai/grok-4.3', (432 - 153) * 1250 + 153 * 200 + (68 + 136) * 2500],
]
