/** Requests in the dialect `gemini`, and their texts. */
import { PNG, SCHEMA, SCHEMA_TEXT, type TextsCase } from "../testing-texts.ts";

export const GEMINI_TEXTS: readonly TextsCase[] = [
  ...(["systemInstruction", "system_instruction"] as const).map((name): TextsCase => [
    `a prompt and ${name}`,
    "gemini",
    {
      [name]: { parts: [{ text: "be kind" }] },
      contents: [{ role: "user", parts: [{ text: "a b" }, { text: "c d" }] }],
    },
    [
      ["prompt", "be kind"],
      ["prompt", "a b"],
      ["prompt", "c d"],
    ],
  ]),
  [
    "both forms of systemInstruction",
    "gemini",
    { systemInstruction: "be kind", system_instruction: { parts: { text: "be brief" } } },
    [
      ["prompt", "be kind"],
      ["prompt", "be brief"],
    ],
  ],
  ...(
    [
      ["functionCall", "functionResponse"],
      ["function_call", "function_response"],
    ] as const
  ).map(([called, response]): TextsCase => [
    `${called} and ${response}`,
    "gemini",
    {
      contents: [
        { role: "model", parts: [{ [called]: { name: "fetch", args: { "a key": "a value" } } }] },
        {
          role: "user",
          parts: [
            {
              [response]: {
                id: "1",
                name: "fetch",
                response: { output: "the page", more: [{ "a b": 1 }] },
              },
            },
          ],
        },
      ],
    },
    [
      ["prompt", "fetch\na key\na value"],
      ["result of fetch", "output\nthe page\nmore\na b"],
    ],
  ]),
  [
    "a result of a function that was not called",
    "gemini",
    {
      contents: [
        {
          role: "user",
          parts: [{ functionResponse: { name: "do as I say", response: { a: "the page" } } }],
        },
      ],
    },
    [["result of ?", "do as I say\na\nthe page"]],
  ],
  [
    "a result that is a text",
    "gemini",
    { contents: [{ parts: [{ functionResponse: "the page" }] }] },
    [["result of ?", "the page"]],
  ],
  [
    "a result without a name, and one beside a text",
    "gemini",
    {
      contents: [
        {
          parts: [
            { functionResponse: { response: "the page" }, text: "and text" },
            { functionCall: { name: "" } },
            { functionResponse: { name: "", response: { a: "b c" } } },
          ],
        },
      ],
    },
    [
      ["result of ?", "the page"],
      ["prompt", "and text"],
      ["result of ?", "\na\nb c"],
    ],
  ],
  [
    "media in a prompt and in a result",
    "gemini",
    {
      contents: [
        {
          parts: [
            { inlineData: { mimeType: "image/png", data: PNG } },
            { inline_data: { mime_type: "application/pdf", data: PNG } },
            {
              functionResponse: {
                response: { a: "b c" },
                parts: [{ inlineData: { mimeType: "image/png", data: PNG } }],
              },
            },
            { inlineData: { mimeType: "text/plain", data: "ZG8gYXMgSSBzYXk=" } },
            { inlineData: { mimeType: "image/png", data: "do as I say" } },
          ],
        },
      ],
    },
    [
      ["result of ?", "a\nb c"],
      ["prompt", "ZG8gYXMgSSBzYXk="],
      ["prompt", "do as I say"],
    ],
  ],
  [
    "thoughts and code",
    "gemini",
    {
      contents: [
        {
          role: "model",
          parts: [
            { text: "let me think", thought: true, thoughtSignature: PNG },
            { executableCode: { language: "PYTHON", code: "print('a b')" } },
            { codeExecutionResult: { outcome: "OUTCOME_OK", output: "a b" } },
          ],
        },
      ],
    },
    [
      ["prompt", "let me think"],
      ["prompt", "PYTHON\nprint('a b')"],
      ["prompt", "OUTCOME_OK\na b"],
    ],
  ],
  ...(["generateContentRequest", "generate_content_request"] as const).map((name): TextsCase => [
    `countTokens with ${name}`,
    "gemini",
    {
      [name]: {
        model: "models/m",
        contents: [{ parts: [{ text: "a b" }] }],
        systemInstruction: { parts: [{ text: "be kind" }] },
        tools: [
          { functionDeclarations: [{ name: "f", description: "tells it", parameters: SCHEMA }] },
        ],
      },
    },
    [
      ["prompt", "be kind"],
      ["prompt", "a b"],
      ["prompt", `f\ntells it\n${SCHEMA_TEXT}`],
    ],
  ]),
  [
    "a request in a request in a request",
    "gemini",
    {
      generateContentRequest: {
        generateContentRequest: { contents: [{ parts: [{ text: "a b" }] }] },
      },
    },
    [["prompt", "a b"]],
  ],
  [
    "settings of the generation",
    "gemini",
    {
      contents: [],
      generationConfig: { temperature: 1, responseMimeType: "application/json" },
      generation_config: { response_schema: SCHEMA },
    },
    [["prompt", SCHEMA_TEXT]],
  ],
  [
    "contents that are a text, or no list",
    "gemini",
    { contents: "do as I say" },
    [["prompt", "do as I say"]],
  ],
  [
    "one content",
    "gemini",
    { contents: { parts: { text: "do as I say" } } },
    [["prompt", "do as I say"]],
  ],
];
