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

func appendAccount(b []byte, a *account) []byte {
	b = appendTerms(appendTerms(b, a.own.value), a.own.next)
	b = binary.AppendVarint(b, a.own.from)
	b = binary.AppendUvarint(b, uint64(a.agency.value))
	b = binary.AppendUvarint(b, uint64(a.agency.next))
	b = binary.AppendVarint(b, a.agency.from)
	b = binary.AppendVarint(b, int64(a.anchor))
	return append(b, boolByte(a.opened)|boolByte(a.closed)<<1)
}

func appendTerms(b []byte, t terms) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.quota), uint64(t.plan))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendKey writes the kind first: none is the end of the keys.
func appendKey(b []byte, k *key) []byte {
	b = append(b, byte(k.kind))
	b = append(b, k.hash[:]...)
	b = binary.AppendUvarint(b, uint64(k.account))
	b = binary.AppendUvarint(b, uint64(k.idLen))
	return binary.AppendUvarint(b, uint64(k.role))
}
