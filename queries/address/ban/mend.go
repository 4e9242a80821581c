package ban

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// mend reads letters that were encoded twice, as in GalliÃ©ni, the once that was meant. No French word holds two such
// signs after each other. What is right already is given back as it is.
func mend(b []byte) []byte {
	var out []byte
	kept := 0 // what of b is in out
	for i := 0; i+2 < len(b); i++ {
		if b[i] != 0xC3 || b[i+2] < 0xC2 { // Ã, Â, â or Å, and no plain letter after it
			continue
		}
		if letter, length := twice(b[i:]); length > 0 {
			out = append(append(out, b[kept:i]...), letter...)
			kept = i + length
			i = kept - 1
		}
	}
	if out == nil {
		return b
	}
	return append(out, b[kept:]...)
}

// twice is the letter that b begins with when it is encoded twice, and how much of b it takes.
func twice(b []byte) (letter []byte, length int) {
	for len(letter) < utf8.UTFMax && length < len(b) {
		r, size := utf8.DecodeRune(b[length:])
		once, ok := charmap.Windows1252.EncodeRune(r)
		if r >= 0x80 && r < 0xa0 {
			once, ok = byte(r), true
		}
		if !ok || once < utf8.RuneSelf {
			return nil, 0
		}
		letter, length = append(letter, once), length+size
		if utf8.FullRune(letter) {
			break
		}
	}
	if r, size := utf8.DecodeRune(letter); r == utf8.RuneError || size != len(letter) {
		return nil, 0
	}
	return letter, length
}
