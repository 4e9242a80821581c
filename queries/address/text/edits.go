package text

// maxTerm is the longest term that is compared letter by letter.
const maxTerm = 48

// Distance counts the letters to insert, drop, change or swap with their neighbour to make one term of the other. It
// stops counting above most and answers most+1.
func Distance(a, b string, most int) int {
	if len(a) > maxTerm || len(b) > maxTerm || len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][maxTerm + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			row[j] = cheapest(a, b, i, j, [3]*[maxTerm + 1]int{before, last, row})
			least = min(least, row[j])
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

func cheapest(a, b string, i, j int, rows [3]*[maxTerm + 1]int) int {
	before, last, row := rows[0], rows[1], rows[2]
	cost := 1
	if a[i-1] == b[j-1] {
		cost = 0
	}
	d := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, before[j-2]+1)
	}
	return d
}

// Deletes calls yield with the term itself and with what is left of it when up to depth letters are dropped, so that
// two terms within depth edits of each other share one of them. Some come more than once.
func Deletes(term string, depth int, yield func([]byte)) {
	var buf [maxTerm]byte
	if len(term) > maxTerm {
		return
	}
	drop(buf[:copy(buf[:], term)], 0, depth, yield)
}

func drop(letters []byte, from, depth int, yield func([]byte)) {
	yield(letters)
	if depth == 0 || len(letters) < 3 {
		return
	}
	var buf [maxTerm]byte
	for i := from; i < len(letters); i++ {
		n := copy(buf[:], letters[:i])
		n += copy(buf[n:], letters[i+1:])
		drop(buf[:n], i, depth-1, yield)
	}
}
