package sitefile

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"lieudit/http/kit"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
)

// properties are the members of proprietes of one site, in the order of the file.
type properties struct {
	keys   []string
	values map[string]json.RawMessage
}

// set adds a value under the key or, if another value has it, under the key with a number.
func (p *properties) set(key string, value any) {
	text, err := kit.MarshalJSON(value)
	if err == nil { // texts and lists of texts always encode
		p.setRaw(key, text)
	}
}

func (p *properties) setRaw(key string, value json.RawMessage) {
	if p.values == nil {
		p.values = map[string]json.RawMessage{}
	}
	if known, isTaken := p.values[key]; isTaken && bytes.Equal(known, value) {
		return
	}
	base := key
	for n := 2; ; n++ {
		if _, isTaken := p.values[key]; !isTaken {
			break
		}
		key = base + "_" + strconv.Itoa(n)
	}
	p.keys, p.values[key] = append(p.keys, key), value
}

// merge adds the members of an object, the proprietes of an exported site. Any other value becomes the member proprietes.
func (p *properties) merge(v record.Value) {
	text := []byte(v.JSON)
	if v.JSON == nil {
		text = []byte(v.Text)
	}
	if len(text) == 0 {
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if opening, err := d.Token(); err != nil || opening != json.Delim('{') || !json.Valid(text) {
		p.set("proprietes", v.Text)
		return
	}
	for d.More() {
		key, _ := d.Token() // the text is valid
		var value json.RawMessage
		if d.Decode(&value) == nil {
			p.setRaw(key.(string), value)
		}
	}
}

// marshal encodes the object; nil if it is empty.
func (p *properties) marshal() json.RawMessage {
	if len(p.keys) == 0 {
		return nil
	}
	var out bytes.Buffer
	for i, key := range p.keys {
		if i == 0 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		name, _ := kit.MarshalJSON(key) // a text always encodes
		out.Write(name)
		out.WriteByte(':')
		out.Write(p.values[key])
	}
	out.WriteByte('}')
	return out.Bytes()
}

// filledTargets are the targets of the columns that the record has. In a wide file most rows may be short.
func (b *builder) filledTargets() []mapping.Target {
	return b.mapping.Targets[:min(len(b.mapping.Targets), len(b.record.Values))]
}

// keepProperties stores the columns without a field. JSON that is not a text is kept unchanged.
func (b *builder) keepProperties() {
	for column, t := range b.filledTargets() {
		switch v := b.value(column); {
		case t.Field == mapping.Properties:
			b.properties.merge(v)
		case t.Property == "":
		case v.JSON != nil:
			b.properties.setRaw(t.Property, v.JSON)
		default:
			b.keepText(t.Property, column)
		}
	}
}

// htmlWithAttributes is HTML that holds more than its text: where a link goes, what a frame shows.
var htmlWithAttributes = regexp.MustCompile(`<\w+\s[^<>]*=`)

// keepText stores the fixed text of a column. HTML that holds more than its text is kept unchanged.
func (b *builder) keepText(key string, column int) {
	raw := strings.TrimSpace(b.value(column).Text)
	if raw == "" {
		return
	}
	if htmlWithAttributes.MatchString(raw) {
		b.properties.set(key, raw)
		return
	}
	if text := b.cleanCell(column, true); text != "" {
		b.properties.set(key, text)
	}
}
