/// Counts the commands in a stream of RESP requests that comes in arbitrary pieces.
///
/// A request is an array of bulk strings, `*2\r\n$3\r\nGET\r\n$1\r\nx\r\n`.
#[derive(Debug, Default)]
pub(super) struct CommandCounter {
    /// The header line so far, `*2` or `$3`.
    header: Vec<u8>,
    /// The bytes of a bulk string that are still to come, its `\r\n` included.
    skip: usize,
    /// The bulk strings of the current command that are still to come.
    missing: usize,
}

impl CommandCounter {
    /// How many commands end in this piece.
    pub(super) fn count(&mut self, piece: &[u8]) -> u64 {
        let mut commands = 0;
        let mut rest = piece;
        while let Some((&byte, tail)) = rest.split_first() {
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len());
                self.skip -= skipped;
                rest = &rest[skipped..];
                if self.skip == 0 {
                    self.missing = self.missing.saturating_sub(1);
                    commands += u64::from(self.missing == 0);
                }
                continue;
            }
            rest = tail;
            if byte == b'\n' {
                self.finish_header();
            } else {
                self.header.push(byte);
            }
        }
        commands
    }

    fn finish_header(&mut self) {
        let header = std::mem::take(&mut self.header);
        let line = String::from_utf8_lossy(&header);
        let number = |text: &str| text.trim_end().parse().unwrap_or(0);
        if let Some(text) = line.strip_prefix('*') {
            self.missing = number(text);
        } else if let Some(text) = line.strip_prefix('$') {
            self.skip = number(text) + 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CommandCounter;

    #[test]
    fn pieces_of_any_size_count_the_same() {
        let stream = b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n*1\r\n\r\n\r\n*2\r\n$3\r\nGET\r\n";
        for size in 1..=stream.len() {
            let mut counter = CommandCounter::default();
            let count: u64 = stream.chunks(size).map(|piece| counter.count(piece)).sum();
            assert_eq!(count, 2, "in pieces of {size}");
            assert_eq!(counter.count(b"$1\r\nk\r\n"), 1, "the third one ends here");
        }
    }
}
