//! What stands in a body.

/// Every field of a response.
pub(super) const RESPONSE: &[&str] = &[
    "candidates",
    "usageMetadata",
    "modelVersion",
    "responseId",
    "createTime",
    "promptFeedback",
    "modelStatus",
    "sdkHttpResponse",
    "automaticFunctionCallingHistory",
];

/// Every field of a candidate.
pub(super) const CANDIDATE: &[&str] = &[
    "content",
    "finishReason",
    "finishMessage",
    "index",
    "safetyRatings",
    "citationMetadata",
    "groundingMetadata",
    "groundingAttributions",
    "urlContextMetadata",
    "avgLogprobs",
    "logprobsResult",
    "tokenCount",
];

/// Every field of a part.
pub(super) const PART: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "videoMetadata",
    "mediaResolution",
];

/// Every field of a usage.
pub(super) const USAGE: &[&str] = &[
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "toolUsePromptTokenCount",
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
    "trafficType",
    "serviceTier",
];

/// Every field of a request that is no setting.
pub(super) const CONVERSATION: &[&str] = &["contents", "systemInstruction", "system_instruction"];

/// What a candidate says of its end beside why.
pub(super) const END: &[&str] = &[
    "finishMessage",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
    "promptFeedback",
];

/// Fields of a response that have a place of their own, or are kept with its end.
pub(super) const RESPONSE_MAPPED: &[&str] = &[
    "candidates",
    "usageMetadata",
    "modelVersion",
    "responseId",
    "createTime",
    "promptFeedback",
];

/// Fields of a candidate that have a place of their own, or are kept with its end.
pub(super) const CANDIDATE_MAPPED: &[&str] = &[
    "content",
    "finishReason",
    "finishMessage",
    "index",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
];

/// Fields of a part that have a place of their own.
pub(super) const PART_MAPPED: &[&str] = &[
    "text",
    "thought",
    "functionCall",
    "functionResponse",
    "toolCall",
    "toolResponse",
    "executableCode",
    "inlineData",
];

/// Counts that have a place of their own.
pub(super) const USAGE_MAPPED: &[&str] = &[
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "toolUsePromptTokenCount",
];
