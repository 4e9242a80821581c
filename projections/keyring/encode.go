package keyring

import "encoding/binary"

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

// appendPage writes the first n rows of a page, each after its own codec, and what the page holds for them.
func appendPage[R any](b []byte, p *page[R], n int, row func([]byte, *R) []byte) []byte {
	b = append(b, byte(n))
	for i := range n {
		b = row(b, &p.rows[i])
		b = binary.AppendUvarint(b, uint64(len(p.text(i))))
		b = appendTexts(b, p.list(i))
	}
	return append(b, p.texts...)
}

func appendAccount(b []byte, a *account) []byte {
	b = appendTerms(appendTerms(b, a.own.value), a.own.next)
	b = binary.AppendVarint(b, a.own.from)
	b = binary.AppendUvarint(b, uint64(a.agency.value))
	b = binary.AppendUvarint(b, uint64(a.agency.next))
	b = binary.AppendVarint(b, a.agency.from)
	b = binary.AppendVarint(b, int64(a.anchor))
	return append(b, bit(a.opened)|bit(a.closed)<<1)
}

func appendTerms(b []byte, t terms) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.quota), uint64(t.plan))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendKey(b []byte, k *key) []byte {
	b = append(b, k.hash[:]...)
	b = binary.AppendUvarint(b, uint64(k.account))
	b = binary.AppendUvarint(b, uint64(k.idLen))
	b = append(b, byte(k.kind))
	return binary.AppendUvarint(b, uint64(k.role))
}
