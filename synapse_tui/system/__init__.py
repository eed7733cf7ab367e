"""What the operating system gives: files, paths, processes, inotify, back-off, the language of the person."""
