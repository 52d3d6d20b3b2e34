use super::{additions, genai, litellm, table};

const GENAI: &str = r#"[
  {"is":"Provider","id":"deepseek","models":[
    {"is":"ModelInfo","id":"Chat","match":{"is":"ClauseEquals","equals":"Chat"},"prices":[
      {"is":"ConditionalPrice","prices":{"is":"ModelPrice","input_mtok":"1","output_mtok":"2"}},
      {"is":"ConditionalPrice","constraint":{"is":"StartDateConstraint","start_date":"2026-02-03"},
       "prices":{"is":"ModelPrice","input_mtok":"3","output_mtok":"4"}},
      {"is":"ConditionalPrice","constraint":{"is":"TimeOfDateConstraint","start_time":"01:00","end_time":"04:00"},
       "prices":{"is":"ModelPrice","input_mtok":"6","output_mtok":"8"}}]}]},
  {"is":"Provider","id":"openai","fallback_model_providers":["deepseek"],"models":[
    {"is":"ModelInfo","id":"gpt","match":{"is":"ClauseStartsWith","starts_with":"gpt-"},
     "prices":{"is":"ModelPrice","input_mtok":{"is":"TieredPrices","base":"1","tiers":[{"is":"Tier","start":200000,"price":"2"}]},"output_mtok":"5"},
     "price_variants":[
       {"is":"PriceVariant","when":{"service_tier":"default"},"prices":{"is":"ModelPrice"}},
       {"is":"PriceVariant","when":{"processing":"batch"},"constraint":{"is":"StartDateConstraint","start_date":"2026-10-14"},
        "prices":{"is":"ModelPrice","input_mtok":"0.5"}}]},
    {"is":"ModelInfo","id":"gpt-embedding","match":{"is":"ClauseEquals","equals":"e"},"prices":{"is":"ModelPrice","input_mtok":"1","output_mtok":"1"}},
    {"is":"ModelInfo","id":"gpt-oss-1b","match":{"is":"ClauseEquals","equals":"o"},"prices":{"is":"ModelPrice","input_mtok":"1","output_mtok":"1"}},
    {"is":"ModelInfo","id":"half","match":{"is":"ClauseEquals","equals":"h"},"prices":{"is":"ModelPrice","input_mtok":"1"}},
    {"is":"ModelInfo","id":"x:free","match":{"is":"ClauseEquals","equals":"x:free"},"prices":{"is":"ModelPrice"}}]},
  {"is":"Provider","id":"elevenlabs","models":[]}
]"#;

fn rows(catalogue: &table::Catalogue) -> Vec<String> {
    table::rows(catalogue)
        .lines()
        .map(|line| line.replace('\t', " "))
        .collect()
}

#[test]
fn dates_hours_lengths_and_services_are_rows() {
    let catalogue = genai::read(GENAI).unwrap();
    assert_eq!(
        rows(&catalogue),
        [
            "deepseek chat standard - - 0 1 - - - 2 - - g",
            "deepseek chat standard 2026-02-03 - 0 3 - - - 4 - - g",
            "deepseek chat standard 2026-02-03 01:00-04:00 0 6 - - - 8 - - g",
            "openai gpt batch 2026-10-14 - 0 0.5 - - - 5 - - g",
            "openai gpt standard - - 0 1 - - - 5 - - g",
            "openai gpt standard - - 200000 2 - - - 5 - - g",
            "openai x:free standard - - 0 0 0 0 - 0 - - g",
        ]
    );
    let names = table::names(&catalogue).replace('\t', " ");
    assert_eq!(
        names.lines().collect::<Vec<_>>(),
        [
            "deepseek chat = chat",
            "openai * > deepseek",
            "openai gpt ^ gpt",
            "openai x:free = x:free",
        ]
    );
}

#[test]
fn what_was_not_seen_before_is_refused() {
    let unsorted = GENAI.replacen(
        r#""is":"ConditionalPrice","prices""#,
        r#""is":"ConditionalPrice","constraint":{"is":"StartDateConstraint","start_date":"2026-01-01"},"prices""#,
        1,
    );
    let regex = GENAI.replace(
        r#"{"is":"ClauseEquals","equals":"Chat"}"#,
        r#"{"is":"ClauseRegex","regex":"^(chat|talk)$"}"#,
    );
    for text in [unsorted, regex] {
        let error = genai::read(&text).unwrap_err();
        assert!(error.to_string().contains("Chat of deepseek"), "{error:#}");
    }
}

#[test]
fn the_second_source_fills_gaps() {
    let mut catalogue = genai::read(GENAI).unwrap();
    let json = r#"{
      "dashscope/Qwen-Plus": {"litellm_provider":"dashscope","mode":"chat","tiered_pricing":[
        {"input_cost_per_token":4e-07,"output_cost_per_token":1.2e-06,"range":[0,256000.0]},
        {"input_cost_per_token":1.2e-06,"output_cost_per_token":3.6e-06,"range":[256000.0,1000000.0]}]},
      "gpt": {"litellm_provider":"openai","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":5e-06,
        "input_cost_per_token_above_200k_tokens":2e-06,"output_cost_per_token_above_200k_tokens":5e-06,
        "input_cost_per_token_flex":5e-07,"output_cost_per_token_flex":2.5e-06,
        "provider_specific_entry":{"fast":2.5}},
      "deepseek/chat": {"litellm_provider":"deepseek","mode":"chat","input_cost_per_token":9e-06,"output_cost_per_token":9e-06},
      "deepseek/nothing": {"litellm_provider":"deepseek","mode":"chat","input_cost_per_token":0,"output_cost_per_token":0},
      "deepseek/pictures": {"litellm_provider":"deepseek","mode":"image_generation","input_cost_per_token":1e-06,"output_cost_per_token":1e-06},
      "groq/other": {"litellm_provider":"groq","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":1e-06}
    }"#;
    let before = rows(&catalogue);
    let differ = litellm::add(json, "2026-11-15", &mut catalogue).unwrap();
    assert_eq!(differ.into_iter().collect::<Vec<_>>(), ["deepseek/chat"]);
    let added: Vec<_> = rows(&catalogue)
        .into_iter()
        .filter(|row| !before.contains(row))
        .collect();
    assert_eq!(
        added,
        [
            "alibaba qwen-plus standard - - 0 0.4 - - - 1.2 - - l",
            "alibaba qwen-plus standard - - 256000 1.2 - - - 3.6 - - l",
            // Flex has no price for long prompts here, so it has none.
            "openai gpt fast - - 0 2.5 - - - 12.5 - - l",
            "openai gpt fast - - 200000 5 - - - 12.5 - - l",
        ]
    );
}

#[test]
fn a_service_is_as_old_as_both_sources_say() {
    let price = r#"{"is":"ModelPrice","input_mtok":"1","output_mtok":"5"}"#;
    let genai_json = format!(
        r#"[{{"is":"Provider","id":"openai","models":[{{"is":"ModelInfo","id":"gpt","match":{{"is":"ClauseEquals","equals":"gpt"}},
        "prices":{price},"price_variants":[{{"is":"PriceVariant","when":{{"processing":"batch"}},
        "constraint":{{"is":"StartDateConstraint","start_date":"2026-10-14"}},
        "prices":{{"is":"ModelPrice","input_mtok":"0.5","output_mtok":"2.5","cache_read_mtok":"0.1"}}}}]}}]}}]"#
    );
    for (batch, rows_of_batch) in [
        (
            "2.5e-06",
            vec!["openai gpt batch - - 0 0.5 0.1 - - 2.5 - - gl"],
        ),
        (
            "3e-06",
            vec![
                "openai gpt batch - - 0 0.5 - - - 3 - - l",
                "openai gpt batch 2026-10-14 - 0 0.5 0.1 - - 2.5 - - g",
            ],
        ),
    ] {
        let mut catalogue = genai::read(&genai_json).unwrap();
        let json = format!(
            r#"{{"gpt":{{"litellm_provider":"openai","mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":5e-06,
            "input_cost_per_token_batches":5e-07,"output_cost_per_token_batches":{batch}}}}}"#
        );
        litellm::add(&json, "2026-11-15", &mut catalogue).unwrap();
        let found: Vec<_> = rows(&catalogue)
            .into_iter()
            .filter(|row| row.contains("batch"))
            .collect();
        assert_eq!(found, rows_of_batch);
    }
}

#[test]
fn an_addition_for_a_model_that_is_gone_is_an_error() {
    let mut catalogue = genai::read(GENAI).unwrap();
    let error = additions::add(&mut catalogue).unwrap_err();
    assert!(
        error.to_string().contains("additions.tsv: anthropic"),
        "{error:#}"
    );
}
