#!/bin/sh
# A Quipu plugin that needs nothing but sh and awk. It speaks MCP: one JSON message a line on standard input, answers
# on standard output, remarks for people on standard error.

# Prints the members of a JSON message: a path, a tab and the value as it is written, one a line.
members() {
  awk '
    function blank() { while (i <= n && index(" \t\r\n", substr(s, i, 1))) i++ }
    function string(from) {
      from = i++
      while (i <= n) {
        c = substr(s, i, 1)
        if (c == "\\") i += 2
        else { i++; if (c == "\"") break }
      }
      return substr(s, from, i - from)
    }
    function next_one() { blank(); if (substr(s, i, 1) == ",") { i++; blank() } }
    function value(path, k, m) {
      blank()
      c = substr(s, i, 1)
      if (c == "{") {
        i++; blank()
        while (i <= n && substr(s, i, 1) != "}") {
          k = string(); blank(); i++
          value(path "." substr(k, 2, length(k) - 2)); next_one()
        }
        i++
      } else if (c == "[") {
        i++; m = 0; blank()
        while (i <= n && substr(s, i, 1) != "]") { value(path "." m++); next_one() }
        i++
      } else if (c == "\"") {
        print path "\t" string()
      } else {
        k = i
        while (i <= n && !index(",]} \t\r\n", substr(s, i, 1))) i++
        print path "\t" substr(s, k, i - k)
        if (k == i) i++
      }
    }
    { s = $0; n = length(s); i = 1; value("") }'
}

# The value at a path of the message that was read last.
at() {
  printf '%s\n' "$message" | awk -F '\t' -v path="$1" '$1 == path { sub(/^[^\t]*\t/, ""); print; exit }'
}

# A JSON string in capital letters; what follows a backslash stays as it is.
upper() {
  awk '{
    for (i = 1; i <= length($0); i++) {
      c = substr($0, i, 1)
      if (c == "\\") {
        w = substr($0, i + 1, 1) == "u" ? 6 : 2
        printf "%s", substr($0, i, w); i += w - 1
      } else printf "%s", toupper(c)
    }
  }'
}

# How many words and lines a JSON string has.
count() {
  awk '{
    s = substr($0, 2, length($0) - 2)
    lines = gsub(/\\n/, " ", s) + (length(s) > 0)
    gsub(/\\[rt]/, " ", s)
    printf "{\"words\":%d,\"lines\":%d}", split(s, all, " "), lines
  }'
}

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }

schema='{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}'

while IFS= read -r line; do
  message=$(printf '%s\n' "$line" | members)
  id=$(at .id)
  # A message without an id wants no answer.
  [ -n "$id" ] || continue
  case $(at .method) in
    '"initialize"')
      answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"text","version":"1.0.0"}}' ;;
    '"ping"') answer '{}' ;;
    '"tools/list"')
      answer '{"tools":[{"name":"upper","description":"Gives a text in capital letters","inputSchema":'"$schema"'},{"name":"count","description":"Counts words and lines","inputSchema":'"$schema"'}]}' ;;
    '"tools/call"')
      text=$(at .params.arguments.text)
      case $(at .params.name) in
        '"upper"')
          text=$(printf '%s\n' "$text" | upper)
          answer '{"content":[{"type":"text","text":'"$text"'}],"structuredContent":{"text":'"$text"'}}' ;;
        '"count"')
          counts=$(printf '%s\n' "$text" | count)
          echo "counted $counts" >&2
          answer '{"content":[],"structuredContent":'"$counts"'}' ;;
        *) refuse -32602 'no such operation' ;;
      esac ;;
    *) refuse -32601 'no such method' ;;
  esac
done
