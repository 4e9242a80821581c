package token

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Redact replaces every token in a text by its hint, so that the text can be logged. It does not check checksums. A word that
// begins like a token but is too short or too long is replaced by the prefix and "…". A text without tokens is returned
// unchanged, without allocation.
func (p Prefixes) Redact(text string) string {
	return p.replaceTokens(text, func(rest, prefix string) (length int, shown string) {
		body := rest[len(prefix):]
		run := wordLength(body)
		shown = prefix
		if run > 0 {
			shown += "…"
		}
		if run == bodyLen+checkLen {
			shown += body[run-hintLen : run]
		}
		return len(prefix) + run, shown
	})
}

// RedactValidTokens replaces only the tokens that KindOf accepts by their hints. It is for stored texts, which must not lose a
// word that only begins like a token.
func (p Prefixes) RedactValidTokens(text string) string {
	return p.replaceTokens(text, func(rest, prefix string) (length int, shown string) {
		whole := len(prefix) + bodyLen + checkLen
		if len(rest) < whole {
			return len(prefix), prefix
		}
		if _, ok := p.KindOf(rest[:whole]); !ok {
			return len(prefix), prefix
		}
		return whole, p.Hint(rest[:whole])
	})
}

// replaceTokens calls replace at each prefix in a text, with the rest of the text from there. replace returns how many bytes
// of it belong to the token, at least those of the prefix, and the text to show instead.
func (p Prefixes) replaceTokens(text string, replace func(rest, prefix string) (length int, shown string)) string {
	at, prefix := p.findPrefix(text)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		length, shown := replace(text[at:], prefix)
		out.WriteString(text[:at])
		out.WriteString(shown)
		text = text[at+length:]
		at, prefix = p.findPrefix(text)
	}
	out.WriteString(text)
	return out.String()
}

// findPrefix finds the first prefix in a text, the longest of those that begin there; at is negative if there is none.
func (p Prefixes) findPrefix(text string) (at int, prefix string) {
	at = -1
	for _, each := range p.all() {
		if i := strings.Index(text, each); i >= 0 && (at < 0 || i < at || i == at && len(each) > len(prefix)) {
			at, prefix = i, each
		}
	}
	return at, prefix
}

// wordLength is the length of the word at the beginning of a text, made of the characters of tokens and prefixes.
func wordLength(text string) int {
	for i := range len(text) {
		if c := text[i]; !base62[c] && c != '_' && c != '-' {
			return i
		}
	}
	return len(text)
}

// base62Length is the length of the longest beginning of a text that is in the alphabet.
func base62Length(text string) int {
	for i := range len(text) {
		if !base62[text[i]] {
			return i
		}
	}
	return len(text)
}

// RedactingHandler returns a log handler that redacts messages and the values of attributes and passes them to next. It does
// not change the names of attributes and groups, which are written in the source code.
func (p Prefixes) RedactingHandler(next slog.Handler) slog.Handler { return redactingHandler{next, p} }

// redactingHandler redacts attributes when they are added, so that they are redacted once for all their lines.
type redactingHandler struct {
	slog.Handler
	prefixes Prefixes
}

func (r redactingHandler) Handle(ctx context.Context, line slog.Record) error {
	redacted := slog.NewRecord(line.Time, line.Level, r.prefixes.Redact(line.Message), line.PC)
	line.Attrs(func(a slog.Attr) bool {
		redacted.AddAttrs(r.redactAttr(a))
		return true
	})
	return r.Handler.Handle(ctx, redacted)
}

func (r redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactingHandler{r.Handler.WithAttrs(r.redactAttrs(attrs)), r.prefixes}
}

func (r redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{r.Handler.WithGroup(name), r.prefixes}
}

func (r redactingHandler) redactAttrs(attrs []slog.Attr) []slog.Attr {
	redacted := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		redacted[i] = r.redactAttr(a)
	}
	return redacted
}

// redactAttr redacts the text of an attribute, also inside groups. Other values are formatted to find tokens in them; a value
// becomes text only if it has one.
func (r redactingHandler) redactAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.prefixes.Redact(v.String()))
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(r.redactAttrs(v.Group())...)}
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if redacted := r.prefixes.Redact(text); redacted != text {
			return slog.String(a.Key, redacted)
		}
		return a
	default:
		return a
	}
}
