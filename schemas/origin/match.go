package origin

import "strings"

const defaultPort = ":443"

// Match says whether the value of an Origin header is one of the kept origins. It allocates nothing.
func Match(header string, kept []string) bool {
	host, ok := requestHost(header)
	if !ok {
		return false
	}
	for _, o := range kept {
		if coversHost(strings.TrimPrefix(o, scheme), host) {
			return true
		}
	}
	return false
}

// requestHost is the host of a serialised https origin, its default port taken off, in whatever case it came.
func requestHost(header string) (string, bool) {
	if len(header) <= len(scheme) || !equalFold(header[:len(scheme)], scheme) {
		return "", false
	}
	host := strings.TrimSuffix(header[len(scheme):], defaultPort)
	return host, host != ""
}

// coversHost says whether a declared host, or the subdomains it stands for, is the host of the request.
func coversHost(declared, host string) bool {
	suffix, isWildcard := strings.CutPrefix(declared, "*")
	if !isWildcard {
		return equalFold(host, declared)
	}
	prefixLen := len(host) - len(suffix)
	return prefixLen > 0 && equalFold(host[prefixLen:], suffix) && isSubdomain(host[:prefixLen])
}

// isSubdomain says whether a text is labels as browsers allow them in a host: also with underscores.
func isSubdomain(text string) bool {
	afterDot := true
	for i := range len(text) {
		c := lowerASCII(text[i])
		if c == '.' && afterDot || !(c == '.' || c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return false
		}
		afterDot = c == '.'
	}
	return !afterDot
}

// equalFold compares an ASCII text of any case with one in lower case. strings.EqualFold would let "K" (U+212A)
// be a k.
func equalFold(text, lowered string) bool {
	if len(text) != len(lowered) {
		return false
	}
	for i := range len(text) {
		if lowerASCII(text[i]) != lowered[i] {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
